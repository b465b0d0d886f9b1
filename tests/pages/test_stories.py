"""Pictures of the samples: their figures belong to the shipped files and can be computed again."""

from __future__ import annotations

import html
import xml.etree.ElementTree as ET

import pytest

from espalier.core.report import story
from espalier.pages.common import shell, tour
from espalier.pages.data.samples import SAMPLES
from sample_data import stories
from tests.support.app import at_home, finish, go, press, state


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_each_sample_has_a_picture_of_its_own_files(name):
    told = story.stories()[name]
    assert told["digests"] == stories.digests(name), "the sample changed: run python -m sample_data.stories"
    ET.fromstring(story.svg(told))
    assert told["title"] in story.said(told)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_another_release_gives_the_same_picture_within_noise(name):
    """Two releases differ by √2 standard deviations, so six are exceeded by chance less than once in 10,000 figures."""
    told = story.stories()[name]
    for one, other in zip(stories.figures(told), stories.figures(stories.MADE[name]()), strict=True):
        assert abs(one - other) <= 6 * told["spread"]


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_report_shows_the_picture_of_a_sample_alone(name):
    told = story.stories()[name]
    project = {"name": name, "schema": [{"name": column} for column in told["columns"]]}
    shown = story.section({"project": project})
    assert html.escape(told["title"]) in shown
    assert "All its rows are invented" in shown
    assert story.section({"project": {**project, "schema": project["schema"][1:]}}) == "", "a table with other columns"
    assert story.section({"project": {**project, "name": "ours"}}) == ""


def pictures(app):
    return " ".join(e.proto.body for e in app.get("html"))


def test_home_shows_the_picture_of_every_sample():
    shown = pictures(at_home())
    for told in story.stories().values():
        assert html.escape(story.said(told)) in shown


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "rows"), [("clinic", "tables"), ("visits", "rows")])
def test_diagnostics_of_a_sample_show_its_picture(name, rows):
    app = go(press(at_home(), f"Open {name}"), "release")
    finish(press(app, "Spend ε"))
    finish(press(go(app, "diagnostics"), f"Compare with the real {rows}"))
    assert html.escape(story.said(story.stories()[name])) in pictures(app)


def test_what_the_pictures_say_is_true():
    readmission, hiring = story.stories()["readmission"], story.stories()["hiring"]
    everything, causes = (one["values"] for one in readmission["lines"])
    assert everything[0] > causes[0], "at home, the model of all associations wins"
    assert causes[1] > everything[1] + 0.05, "elsewhere, the model of causes wins"
    real, free, fenced = hiring["points"]
    assert fenced["x"] < 0.6 * min(real["x"], free["x"])
    for steady, changed in story.stories()["clinic"]["series"].values():
        assert changed > 1.25 * steady


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
