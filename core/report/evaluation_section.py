"""Sections of the report on the private evaluation: its figures and their methods."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from espalier.core.evaluation.private.evaluation import bounded
from espalier.core.report.html import table
from espalier.core.report.measurement_section import measurements

_FIGURES = {
    "accuracy": "TSTR (train on synthetic, test on real), accuracy: share of correct predictions of a model trained on "
    "the synthetic rows",
    "auc": "AUC of that model (0.5 is a coin toss, 1 is perfect)",
    "one_way_tv": "One-way error: total variation distance of a column, averaged over columns (0 means equal)",
    "cmi": "CMI: how much the real outcome reveals about protected columns given the admissible ones (0 means nothing)",
}


def private_evaluation(section: Mapping[str, Any] | None, plan: Mapping[str, Any]) -> str:
    """Return the figures of the private evaluation; empty if the plan has none."""
    if section is None:
        return ""
    others = ", the first target; the other targets are not evaluated" if plan.get("targets") else ""
    rows = []
    for f in section["figures"]:
        what = _FIGURES[f["figure"]]
        if "about" in f:
            what = what.replace("given the admissible ones", f["about"])
        what = escape(what)
        if f["value"] is None:
            why = ". ".join(filter(None, (f"not available: {f['reason']}", bounded(f))))
            rows.append(f'<tr><td>{what}</td><td colspan="2">{escape(why)}</td></tr>')
        else:
            rows.append(
                f'<tr><td>{what}</td><td class="n">{f["value"]:.3f}</td>'
                f'<td class="n">{f["low"]:.3f} to {f["high"]:.3f}</td></tr>'
            )
    target = f" The model predicts <strong>{escape(section['target'])}</strong>{others}." if section["target"] else ""
    guess = section.get("accuracy_baseline")
    baseline = (
        "According to the same noisy counts, always predicting the most common value would have an accuracy of about "
        f"{guess:.3f}."
        if guess is not None
        else "These counts do not show the accuracy of always predicting the most common value. Compare the accuracy "
        "with the share of that value in the synthetic table."
    )
    if any(f["figure"] == "accuracy" and f["value"] is not None for f in section["figures"]):
        target += f" {baseline}"
    bounds = "".join(f" {bounded(f)}" for f in section["figures"] if f["value"] is not None and bounded(f))
    share = f"{100 * section['share']:.3g} %"
    which = f"all rows of {share} of the people" if section["by"] == "person" else f"{share} of the rows"
    return (
        "<h2>Quality of the table: private evaluation</h2>"
        f"<p>These figures are safe to share. They were computed from noisy counts of {section['rows']:,} real rows "
        f"({which}), which were held out at random before the release.{target} "
        f"Each interval contains the population value in 95 of 100 cases.{escape(bounds)}</p>"
        + table("Figures on held-out rows", ["figure", "value#", "95 % interval#"], rows)
    )


def evaluation_methods(section: Mapping[str, Any] | None) -> str:
    """Return the methods of the private evaluation: its intervals and noisy counts."""
    if section is None:
        return ""
    rows = [
        f"<tr><td>{escape(f['figure'])}</td><td>{escape(f['method'])}</td></tr>"
        for f in section["figures"]
        if f["value"] is not None
    ]
    return (
        "<h2>Methods of the private evaluation</h2><p>The figures are differentially private. "
        f"{escape(section['why'])} Each interval holds for one figure and covers noise and sampling.</p>"
        + table("95 % intervals (cmi: conditional mutual information, in nats)", ["figure", "interval"], rows)
        + measurements(section)
    )
