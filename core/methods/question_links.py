"""Links between columns that questions and counts create, and their effect on a fence.

A question joins its columns in the model. If it has columns on both sides of a separation, the separation is lost and
the plan is refused. A column on neither side could still connect the sides, partly through a question and partly
through a pair that the method measures. Each group of columns that questions link, except through separating columns,
is therefore added to one side.

Proof that this suffices. Let L and R be the extended sides and S the separating columns. Every linked group lies within
L or within R. Suppose that a path from L to R avoids S. Between its last column in L and the next column in R, it
visits only columns on neither side. No question links these, so all steps there are pairs that the method measured. The
method's own graph therefore contains such a path, which its frame forbids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Separation
from espalier.core.project.file import Project


def scopes_of(project: Project) -> dict[str, tuple[str, ...]]:
    """Return the columns that each question and count joins. A count in a condition contributes its members."""
    questions, counts = project.question_list.resolve(project.schema)
    members = {count.name: tuple(count.members) for count in counts}
    found = {f"the count {name!r}": project.schema.clique(columns) for name, columns in members.items()}
    for question in questions:
        named = {column for condition in question.alternatives for column in condition}
        plain = {c for name in named for c in members.get(name, (name,))}
        found[f"the question {question.name!r}"] = project.schema.clique(plain)
    return found


def links_of(scopes: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of columns within one question or count, without repetition."""
    return tuple(dict.fromkeys(pair for scope in scopes for pair in combinations(scope, 2)))


def widened(separation: Separation, project: Project, scopes: dict[str, tuple[str, ...]]) -> Separation:
    """Return the separation with every linked group added to one side.

    Raises :class:`ProjectError`, naming the separation, if a group has columns on both sides.
    """
    given, left, right = set(separation.given), set(separation.left), set(separation.right)
    for group in _groups(scopes.values(), given):
        if group & left and group & right:
            raise _crossed(separation, scopes, group)
        (right if group & right else left).update(group)
    clique = project.schema.clique
    return replace(separation, left=clique(left), right=clique(right))


def _groups(scopes: Iterable[Sequence[str]], given: set[str]) -> list[set[str]]:
    """Return the groups linked without passing through ``given``; groups of one column are left out."""
    groups: list[set[str]] = []
    for scope in scopes:
        joined = set(scope) - given
        apart = [g for g in groups if not g & joined]
        groups = [*apart, joined.union(*(g for g in groups if g & joined))]
    return [g for g in groups if len(g) > 1]


def _crossed(separation: Separation, scopes: dict[str, tuple[str, ...]], group: set[str]) -> ProjectError:
    left, right, given = (", ".join(x) for x in (separation.left, separation.right, separation.given))
    among = [name for name, scope in scopes.items() if group & set(scope)]
    both = [n for n in among if set(scopes[n]) & set(separation.left) and set(scopes[n]) & set(separation.right)]
    if both:
        asks = f"{both[0]} joins {', '.join(scopes[both[0]])}"
    else:
        asks = (
            f"{', '.join(among[:4])}{' and others' if len(among) > 4 else ''} together join {', '.join(sorted(group))}"
        )
    return ProjectError(
        f"{asks}, but {left} and {right} must stay independent given {given or 'nothing'} ({separation.why}); "
        "leave one of these columns out of the question, or plan without this separation",
        key="questions",
        separation=separation.to_json(),
    )
