"""Editing a project: settings that are kept while columns are left out, undo, and changes that are refused as a
whole.
"""

from __future__ import annotations

import pytest

from espalier.core.errors import EspalierError, GraphError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.project.constraint_kinds import Impossible
from espalier.core.project.constraints import Constraints
from espalier.core.project.editor import UNDO_STEPS, ProjectEditor, References
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, LeftOut, Schema

NAMES = ("a", "b", "c", "y", "z")
SCHEMA = Schema(tuple(Column(name, "categorical", ("no", "yes")) for name in NAMES))
NEVER = Impossible({"a": ("yes",), "b": ("yes",)})


def editor() -> ProjectEditor:
    return ProjectEditor(
        Project(
            "clinic",
            SCHEMA,
            Plan("mst", 1.0, 1e-6, target="y", targets={"z": 2.0}),
            Dag((("a", "b"), ("b", "y"), ("c", "y")), positions={"b": (1.0, 2.0)}, hidden=(("a", "c"), ("b", "z"))),
            Roles(("y",), ("a",), ("b",)),
            separations=(Separation(("c",), ("b",), ("a",)), Separation(("c",), ("z",), ())),
            constraints=Constraints((NEVER,)),
        )
    )


def without(*names: str) -> Schema:
    return Schema(tuple(c for c in SCHEMA.columns if c.name not in names))


def said(project: Project) -> dict[str, object]:
    """Return a project's statements about its columns, without their order."""
    found = References.of(project)
    return {
        "edges": set(found.edges),
        "hidden": set(found.hidden),
        "roles": {role: set(columns) for role, columns in found.roles.items()},
        "separations": set(found.separations),
        "constraints": list(map(str, found.constraints)),
        "target": (found.target, dict(found.targets)),
        "positions": dict(project.dag.positions),
    }


@pytest.mark.parametrize("gone", [("b",), ("a", "b"), ("y",), ("z",), ("y", "z"), ("a", "c", "z")])
def test_what_leaves_with_columns_returns_with_them(gone: tuple[str, ...]) -> None:
    work = editor()
    before = said(work.project)
    work.change_schema(without(*gone))
    assert said(work.project) != before
    work.change_schema(without(gone[0]))
    work.change_schema(SCHEMA)
    assert said(work.project) == before
    assert work.aside == References()


def test_the_references_of_a_column_that_leaves_are_set_aside() -> None:
    work = editor()
    work.change_schema(without("b"))
    assert work.project.dag.edges == (("c", "y"),)
    assert work.project.roles == Roles(("y",), ("a",))
    assert work.project.separations == (Separation(("c",), ("z",), ()),)
    assert not work.project.constraints
    assert work.aside.edges == (("a", "b"), ("b", "y"))
    assert work.aside.hidden == (("b", "z"),)
    assert work.aside.roles == Roles(admissible=("b",))
    assert work.aside.target is None


def test_a_target_that_was_removed_does_not_return() -> None:
    work = editor()
    work.change_schema(without("y"))
    work.change_schema(SCHEMA)
    work.change_plan(targets={})
    work.redraw(target=None)
    work.change_schema(without("a"))
    assert work.project.plan.target is None


def test_a_target_chosen_meanwhile_stays() -> None:
    work = editor()
    work.change_schema(without("y"))
    assert work.project.plan.targets == {}, "further targets need a target"
    work.redraw(target="c")
    work.change_schema(SCHEMA)
    assert (work.project.plan.target, work.project.plan.targets) == ("c", {})


def test_a_change_that_is_impossible_changes_nothing() -> None:
    work = editor()
    work.change_schema(without("b"))
    work.redraw(Dag((("y", "a"),)))
    before, aside = work.project, work.aside
    with pytest.raises(GraphError, match="cycle"):
        work.change_schema(SCHEMA)  # a → b → y → a
    assert (work.project, work.aside) == (before, aside)
    with pytest.raises(EspalierError):
        work.answer(False, "z", 0)
    assert (work.project, work.aside) == (before, aside), "the person column is still in the schema"


def test_the_person_column_leaves_the_schema_and_its_guess() -> None:
    work = editor()
    work.answer(False, "z", 3)
    assert "z" not in work.project.schema
    assert (work.project.plan.person, work.project.plan.rows_per_person) == ("z", 3)
    guessed = ProjectEditor(Project("clinic", Schema(SCHEMA.columns, (LeftOut("id"),)), Plan("mst", 1.0, 1e-6)))
    guessed.answer(False, "id", 2)
    assert guessed.project.schema.left_out == ()
    alone = ProjectEditor(Project("clinic", Schema(SCHEMA.columns[:1]), Plan("mst", 1.0, 1e-6)))
    with pytest.raises(EspalierError, match="only column"):
        alone.leave_out("a")


def test_undo_and_redo_restore_drawings_until_the_columns_change() -> None:
    work = editor()
    steps = [work.drawing]
    work.change_causes("y", ["a"])
    steps.append(work.drawing)
    work.give_role("b", None)
    steps.append(work.drawing)
    work.change_role("outcome", ["c"])
    assert work.project.plan.target == "c", "the target follows the outcome"
    steps.append(work.drawing)
    for step in reversed(steps[:-1]):
        assert work.undo()
        assert work.drawing == step
    assert not work.undo()
    for step in steps[1:]:
        assert work.redo()
        assert work.drawing == step
    assert not work.redo()
    work.change_schema(without("b"))
    assert not work.undo()


def test_undo_remembers_a_limited_number_of_drawings() -> None:
    work = editor()
    for i in range(UNDO_STEPS + 5):
        work.redraw(target="c" if i % 2 else "y")
    assert len(work.past) == UNDO_STEPS


def test_a_plan_that_is_taken_keeps_the_answer_about_people() -> None:
    work = editor()
    work.answer(False, rows_per_person=4)
    work.take_plan(Plan("independent", 2.0, 1e-6))
    assert (work.project.plan.method, work.project.plan.rows_per_person) == ("independent", 4)
    work.sign({"drawn_by": "Anna", "approved_by": ""})
    assert work.project.signoff == {"drawn_by": "Anna"}
