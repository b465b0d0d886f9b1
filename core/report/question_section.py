"""Section of the report on questions and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from espalier.core.project.question_list import in_words
from espalier.core.report.html import table


def question_section(facts: Mapping[str, Any]) -> str:
    """Return questions, noisy answers and the answers of the synthetic rows; empty without questions."""
    if not facts.get("questions") and not facts.get("counts"):
        return ""
    words = asked_words(facts["project"])
    return (
        "<h2>Questions and counts</h2>"
        + (_questions(facts["questions"], words) if facts["questions"] else "")
        + "".join(_count(one, words) for one in facts["counts"])
        + _agreement(facts.get("agreement"))
        + _rounds(facts.get("rounds"))
    )


def _questions(questions: Sequence[Mapping[str, Any]], words: Mapping[str, Mapping[str, Any]]) -> str:
    projected = any("projected" in q for q in questions)
    rows = []
    for q in questions:
        answer = "not measured" if q["answer"] is None else f"{q['answer']:,.0f} ± {q['sigma']:,.1f}"
        said = f": {escape(in_words(words[q['name']]))}" if q["name"] in words else ""
        within = "" if q["low"] is None else f"{q['low']:,.0f} to {q['high']:,.0f}"
        rows.append(
            f"<tr><td><strong>{escape(q['name'])}</strong>{said}</td>"
            f'<td class="n">{answer}</td><td class="n">{within}</td><td class="n">{q["fitted"]:,.0f}</td>'
            + (f'<td class="n">{q["projected"]:,.0f}</td>' if projected else "")
            + f'<td class="n">{q["rows"]:,.0f}</td></tr>'
        )
    heads = ["question", "noisy answer ± σ#", "interval of the true answer#", "fitted#"]
    heads += ["L∞ projection, for comparison#"] if projected else []
    return table(
        "Number of rows that meet each question. The noisy answers are safe to share. In 95 of 100 releases, all "
        "intervals contain their true answers. The fitted answer is the model's. The last column counts the "
        "synthetic rows, scaled to the size of the real table",
        [*heads, "synthetic rows#"],
        rows,
    )


def _count(one: Mapping[str, Any], words: Mapping[str, Mapping[str, Any]]) -> str:
    last = len(one["answer"]) - 1
    open_ended = last < len(words[one["name"]]["of"])
    rows = [
        f"<tr><td>{value}{' or more' if open_ended and value == last else ''}</td>"
        + "".join(f'<td class="n">{one[key][value]:,.0f}</td>' for key in ("answer", "fitted", "rows"))
        + "</tr>"
        for value in range(last + 1)
    ]
    return table(
        f"The count {one['name']}: {in_words(words[one['name']])}. The noise has σ = {one['sigma']:,.1f} rows",
        ["value", "rows (noisy)#", "fitted#", "synthetic rows#"],
        rows,
    )


def _agreement(best: Mapping[str, Any] | None) -> str:
    if best is None:
        return ""
    return (
        f"<p>Every table differs from some noisy answer by at least {best['bound']:.3g} standard deviations of its "
        f"noise. The best table found differs by at most {best['alpha']:.3g}. The weights in <code>release.json</code> "
        "(<code>agreement</code>) prove this. They depend only on the noisy answers.</p>"
    )


def _rounds(rounds: Mapping[str, Any] | None) -> str:
    if rounds is None:
        return ""
    ended = ", because a noisy test found that further choices would be noise" if rounds["stopped"] else ""
    return f"<p>{rounds['ran']} of {rounds['planned']} planned rounds ran{ended}.</p>"


def agreement_said(best: Mapping[str, Any]) -> str:
    """Return a sentence, shown on pages, about the best possible agreement with the noisy answers."""
    return (
        f"Every table differs from some noisy answer by at least {best['bound']:.3g} σ. The weights that prove it are "
        "in release.json."
    )


def asked_words(project: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the questions and counts of the project file by name."""
    return {str(e["name"]): e for key in ("questions", "counts") for e in project.get(key, [])}
