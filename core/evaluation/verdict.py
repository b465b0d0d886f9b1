"""Verdict on a synthetic table: suitable and unsuitable uses, and the certainty of each. Confidential. It reads only
the figures of :func:`espalier.core.evaluation.evaluate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from espalier.core.methods import is_fenced, keeps_causes_only
from espalier.core.project.file import Project

Grade = Literal["good", "fair", "poor", "unknown"]

CLOSE, FAR = 0.03, 0.10
"""Losses of AUC up to which a model trained on synthetic rows counts as about as good, and beyond which it counts as
much worse.
"""

GOOD_TV, POOR_TV = 0.05, 0.20
"""Mean total variation of single columns up to which they count as close, and beyond which noise outweighs the data."""

FAR_OFF = 0.10
"""Total variation of one column above which the verdict names it; above `POOR_TV`, the column is noise."""
MOST_NAMED = 4

SMALL_GROUP = 100
"""Number of rows below which a group's share may be off by 0.1 by chance alone."""
CHANCE = 0.55
"""An AUC below which a model is hardly better than a coin toss."""


@dataclass(frozen=True)
class Verdict:
    """``headline`` is the first sentence; ``sentences`` are the other findings, and the open questions."""

    grade: Grade
    headline: str
    sentences: tuple[str, ...]


def verdict(
    project: Project, facts: Mapping[str, Any], elsewhere: Mapping[str, Mapping[str, Any]] | None = None
) -> Verdict:
    """Return the verdict on one release. ``facts`` come from its own table or from held-out rows.

    ``elsewhere`` are facts of the same release tested on other real tables, by the name of each table.
    """
    (learned, task), (shares, columns) = _task(facts["tstr"]), _columns(facts["fidelity"])
    grades = learned, shares
    away = [_away(name, facts["tstr"], other["tstr"], project) for name, other in (elsewhere or {}).items()]
    fair, fenced = _fairness(facts), is_fenced(project.plan)
    if any(away) and learned != "poor":
        task = ""  # the first sentence already names the better model at home and states the difference
    sentences = [s for s in (*away, *(fair if fenced else ()), task, _missing(facts["tstr"]), columns) if s]
    if not away and keeps_causes_only(project.plan):
        sentences.append("Without a table from another place, it is unknown whether this holds elsewhere.")
    if not fenced:
        sentences += fair
    grade: Grade = "poor" if "poor" in grades else "fair" if "fair" in grades else "good"
    if grades[0] == "unknown" and grade == "good":
        grade = "unknown"
    if grade == "poor":
        head = "This table should not be used: " + (
            "noise outweighs the data."
            if grades[1] == "poor"
            else "models learn much less from it than from the real rows."
        )
        sentences.append("Use more of the budget, include fewer columns, or coarsen those with many categories.")
    else:
        head = sentences.pop(0)
    return Verdict(grade, head, tuple(sentences))


def _task(t: Mapping[str, Any]) -> tuple[Grade, str]:
    ours, real, target = t["auc_synthetic"], t["auc_real"], t["target"]
    if ours is None or real is None:
        return "unknown", "Nothing was predicted from this table, so its quality for training models is unknown."
    beside = f"({ours:.3f} against {real:.3f}; 0.5 is a coin toss, 1 is perfect)"
    loss = real - ours
    if ours < CHANCE and loss > CLOSE:
        return "poor", f"A model trained on this table cannot predict {target} {beside}."
    if loss <= -CLOSE:
        return (
            "good",
            f"A model trained on this table predicts {target} better than one trained on the real rows {beside}.",
        )
    if loss <= CLOSE:
        return (
            "good",
            f"A model trained on this table predicts {target} about as well as one trained on real rows {beside}.",
        )
    word = "less well" if loss <= FAR else "much less well"
    return "fair", f"A model trained on this table predicts {target} {word} than one trained on real rows {beside}."


def _missing(t: Mapping[str, Any]) -> str:
    """Return a sentence about tested rows without a target; older files do not state their share."""
    share = t.get("target_missing", 0.0)
    if not share:
        return ""
    return f"{t['target']} is missing in {100 * share:.0f} % of the tested rows, and these figures leave them out."


def _away(where: str, home: Mapping[str, Any], away: Mapping[str, Any], project: Project) -> str:
    """Return sentences that state which model is better at home, which is better elsewhere, and why."""
    if None in (home["auc_synthetic"], home["auc_real"], away["auc_synthetic"], away["auc_real"]):
        return ""
    there = where[:1].lower() + where[1:]
    at_home = (
        f"At home the model trained on {_winner(home)} rows predicts {home['target']} {_better(home)} "
        f"({_both(home)}; 0.5 is a coin toss, 1 is perfect)"
    )
    if _winner(home) == _winner(away):
        return f"{at_home}, and in {there} too ({_both(away)})."
    text = f"{at_home}; in {there} the model trained on {_winner(away)} rows does ({_both(away)})."
    if _winner(away) == "synthetic" and keeps_causes_only(project.plan):
        text += " The real rows contain links that break elsewhere; this table keeps only the direct causes."
    return text


def _winner(t: Mapping[str, Any]) -> str:
    return "synthetic" if t["auc_synthetic"] > t["auc_real"] else "real"


def _better(t: Mapping[str, Any]) -> str:
    apart = abs(t["auc_synthetic"] - t["auc_real"])
    return "slightly better" if apart <= CLOSE else "better" if apart <= FAR else "much better"


def _both(t: Mapping[str, Any]) -> str:
    return f"AUC: synthetic {t['auc_synthetic']:.3f}, real {t['auc_real']:.3f}"


def _columns(f: Mapping[str, Any]) -> tuple[Grade, str]:
    tv, pairs = f["one_way_tv"], f["two_way_tv"]
    beside = f"single columns differ in {100 * tv:.1f} % of rows on average"
    if pairs is not None:
        beside += f", pairs in {100 * pairs:.1f} %"
    said = _exceptions(f.get("columns", ()))
    if tv > POOR_TV:
        return "poor", f"This table does not show the real shares: {beside}."
    if tv > GOOD_TV:
        return "fair", f"This table shows roughly the real shares{said}: {beside}."
    return "good", f"This table shows the real shares closely{said}: {beside}."


def _exceptions(columns: Sequence[Mapping[str, Any]]) -> str:
    """Return a clause that names the columns that are noise or far off; empty if there are none."""
    parts = []
    for low, high, what in ((POOR_TV, 2.0, "noise"), (FAR_OFF, POOR_TV, "far off")):
        names = [c["column"] for c in sorted(columns, key=lambda c: -c["tv"]) if low < c["tv"] <= high]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            parts.append(f"{', '.join(names[:MOST_NAMED])}{more} ({what})")
    return f", except {' and '.join(parts)}" if parts else ""


def _groups(fair: Mapping[str, Any]) -> str:
    """Return the names of two groups; for more, the columns that distinguish them."""
    named = [", ".join(map(str, g["group"].values())) for g in fair.get("groups") or ()]
    if len(named) == 2:
        return f"between {named[0]} and {named[1]}"
    return f"between the groups by {' and '.join(fair['protected'])}"


def small_group(fair: Mapping[str, Any]) -> str:
    """Return a caution to append to a sentence on gaps if the smallest group has few rows; empty otherwise."""
    known = [g["rows"] for g in fair.get("groups") or () if g.get("rows") is not None]
    if not known or min(known) >= SMALL_GROUP:
        return ""
    return f" The smallest group has {min(known)} of the tested rows, so chance alone can make the gap large."


def _fairness(facts: Mapping[str, Any]) -> list[str]:
    fair, t = facts.get("fairness"), facts["tstr"]
    if fair is None:
        return []
    ours, real = fair.get("demographic_parity_difference"), fair.get("demographic_parity_difference_real")
    if ours is None or real is None:
        return []
    moved = "fell" if ours < real else "rose"
    said = (
        f" {fair['target']} = {fair['positive']}" if fair.get("target") and fair.get("positive") is not None else " yes"
    )
    text = (
        f"With a model trained on this table instead of the real rows, the gap {_groups(fair)} in how often it "
        f"predicts{said} {moved} from {real:.3f} to {ours:.3f}"
    )
    if t["accuracy_synthetic"] is not None and t["accuracy_real"] is not None:
        text += f"; its accuracy went from {t['accuracy_real']:.2f} to {t['accuracy_synthetic']:.2f}"
    return [f"{text}.{small_group(fair)}"]
