"""Signing in for real: the app, a browser, and the test's own OpenID Connect provider."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sign_in import Guarded, signed_in

pytestmark = [pytest.mark.browser]


@pytest.mark.parametrize(
    ("address", "sees", "steward"),
    [
        ("anna@hospital.example", "Begin with an example", True),
        ("ben@partner.example", "Nothing is shared yet", False),
        ("eve@evil.example", "Your address is not on this server's lists", False),
    ],
)
def test_each_sees_what_the_lists_say(guarded: Guarded, browser: Any, address: str, sees: str, steward: bool) -> None:
    with signed_in(guarded, browser, address) as page:
        page.get_by_text(sees).first.wait_for()
        uploads = page.locator("[data-testid=stFileUploader]")
        if steward:
            page.goto(f"{guarded[0]}/data")
            uploads.nth(1).wait_for()
            page.goto(f"{guarded[0]}/plan")
            page.get_by_role("heading", name="Plan", exact=True).wait_for()
        else:
            assert uploads.count() == 0
            page.goto(f"{guarded[0]}/plan")
            page.get_by_text(sees).first.wait_for()
            assert page.get_by_role("heading", name="Plan", exact=True).count() == 0
            page.goto(guarded[0])
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("button", name="Sign in").wait_for()
