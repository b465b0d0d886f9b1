"""Take the pictures of the tutorials in a real browser: `python -m docs.take_pictures [NAME …]`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.browser import Person, chromium, serving

FOLDER = Path(__file__).parent / "pictures"
STAYS = Path(__file__).parent.parent / "sample_data" / "stays.csv"
PORT = 8799


def opened(person: Person, sample: str) -> None:
    """Open a sample."""
    person.visit("Home", "Espalier")
    person.press(f"Open {sample}")
    person.rests()


def shot(person: Person, name: str) -> None:
    """Write one picture of the current screen."""
    person.rests()
    person.page.wait_for_timeout(1500)
    person.page.screenshot(path=FOLDER / f"{name}.png")


def scrolled(person: Person, heading: str) -> None:
    """Scroll to a heading."""
    found = person.page.get_by_role("heading", name=heading).first
    person.finds(found)
    found.evaluate("heading => heading.scrollIntoView({block: 'start'})")


def clinician(person: Person) -> None:
    opened(person, "readmission")
    person.visit("Structure")
    shot(person, "structure")
    person.visit("Plan")
    person.page.get_by_text("Predict an outcome, elsewhere").first.click()
    shot(person, "plan")
    person.visit("Release")
    person.page.get_by_role("button", name="Spend ε").first.click()
    person.sees(": 8,000 synthetic rows")
    shot(person, "release")
    person.visit("Analyse")
    person.pick("Predictors", "heart_failure")
    person.page.keyboard.press("Escape")
    person.sees("counted together")
    shot(person, "analyse")
    person.visit("Diagnostics")
    person.press("Compare with the real rows")
    person.sees("in the other hospital the model")
    shot(person, "diagnostics")


def fairness(person: Person) -> None:
    opened(person, "hiring")
    person.visit("Structure")
    shot(person, "fence")
    person.visit("Plan")
    person.page.get_by_text("Meet a fairness requirement").first.click()
    person.rests()
    scrolled(person, "The frame")
    shot(person, "fence-plan")


def steward(person: Person) -> None:
    person.visit("Home", "Espalier")
    shot(person, "home")
    person.visit("Data")
    person.give("Your table", STAYS)
    person.press("Guess the columns")
    person.page.get_by_text("No, one row per person").first.click()
    person.press("Use this answer")
    person.rests()
    scrolled(person, "Obviously public")
    shot(person, "data")
    person.visit("Ledger")
    shot(person, "ledger")


WALKS: dict[str, Callable[[Person], None]] = {"clinician": clinician, "fairness": fairness, "steward": steward}


def main(names: list[str]) -> None:
    """Walk the tutorials that are named, or all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or list(WALKS):
        with tempfile.TemporaryDirectory() as kept, serving(PORT, Path(kept)), chromium() as browser:
            page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
            page.goto(f"http://127.0.0.1:{PORT}/")
            WALKS[name](Person(page))


if __name__ == "__main__":
    main(sys.argv[1:])
