"""Pictures of the samples: their figures belong to the files that are shipped, and can be worked out again."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from espalier.pages.common import shell, tour
from espalier.pages.data.samples import SAMPLES
from espalier.pages.home import story
from sample_data import stories
from tests.support.app import at_home, go, press, state

LINKED = {"clinic"}
"""Samples of two tables: their release is judged by other figures, and has no picture yet."""
TOLD = sorted(set(SAMPLES) - LINKED)


@pytest.mark.parametrize("name", TOLD)
def test_each_sample_has_a_picture_of_its_own_files(name):
    told = story.stories()[name]
    assert told["digests"] == stories.digests(name), "the sample changed: run python -m sample_data.stories"
    ET.fromstring(story.svg(told))
    assert told["title"] in story.said(told)


def figures(told):
    """Every number of a picture, in order."""
    if told["kind"] == "slope":
        return [v for one in told["lines"] for v in one["values"]]
    if told["kind"] == "points":
        return [v for p in told["points"] for v in (p["x"], p["y"])]
    return [v for values in told["series"].values() for v in values]


@pytest.mark.nightly
@pytest.mark.parametrize("name", TOLD)
def test_another_release_gives_the_same_picture_within_noise(name):
    kept, again = (figures(told) for told in (story.stories()[name], json.loads(json.dumps(stories.story(name)))))
    scale = max(v for v in kept if v is not None)
    for one, other in zip(kept, again, strict=True):
        assert (one is None) == (other is None) or name == "services"
        if one is not None and other is not None:
            assert abs(one - other) < (0.25 if "series" in story.stories()[name] else 0.12) * scale


def test_what_the_pictures_say_is_true():
    readmission, hiring = story.stories()["readmission"], story.stories()["hiring"]
    everything, causes = (one["values"] for one in readmission["lines"])
    assert everything[0] > causes[0], "at home all associations win"
    assert causes[1] > everything[1] + 0.05, "elsewhere the causes do"
    real, free, fenced = hiring["points"]
    assert fenced["x"] < 0.6 * min(real["x"], free["x"])


def test_the_tour_leads_from_stop_to_stop():
    app = at_home()
    press(app, "Start the tour")
    assert state(app).sample == "readmission"
    for i, (page, _) in enumerate(tour.STOPS):
        go(app, page.lower())
        assert any(f"Stop {i + 1} of {len(tour.STOPS)}" in m.value for m in app.markdown)
        assert page in shell.PAGES
    press(app, "End the tour")
    assert not state(app).touring
