"""Questions and counts in a project file, and in a CSV of questions."""

from __future__ import annotations

import re

import pytest

from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList, in_words, read_questions
from espalier.core.project.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("age", "numeric", edges=(0, 20, 60, 100), missing=True),
        Column("sex", "categorical", ("female", "male")),
        Column("ill", "ordinal", ("no", "mild", "severe")),
    )
)
COUNT = {"name": "burden", "of": {"ill": ["mild", "severe"], "sex": ["female"]}, "up_to": 2}
ASKED = {"name": "older women", "where": {"age": [60, 100], "sex": ["female"]}}


def resolved(question=ASKED, counts=(COUNT,)):
    return QuestionList.from_json([question], list(counts)).resolve(SCHEMA)


def test_conditions_become_codes():
    (question,), (count,) = resolved()
    assert question.alternatives == ({"age": (2,), "sex": (0,)},)
    assert (dict(count.members), count.size) == ({"ill": (1, 2), "sex": (0,)}, 3)
    either = {"name": "e", "any": [{"age": ["(missing)"]}, {"burden": [1, 9], "ill": ["severe", "no"]}]}
    ((question,), _) = resolved(either)
    assert question.alternatives == ({"age": (3,)}, {"burden": (1, 2), "ill": (0, 2)})


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            {"name": "q", "where": {"age": [60, 90]}},
            "one bin edge to a later one: 0, 20, 60, 100; 90 is not an edge, 60 and 100 are nearest",
        ),
        ({"name": "q", "where": {"age": [0, 101]}}, "101 is not an edge, 100 is nearest"),
        ({"name": "q", "where": {"age": "60..100"}}, "or a range of two numbers, such as [0, 100]"),
        ({"name": "q", "where": {"age": ["60..100"]}}, "is not a category of 'age': give a range of two numbers"),
        ({"name": "q", "where": {"Sexe": ["male"]}}, "nor a count; did you mean 'sex'?"),
        ({"name": "q", "where": {"sex": ["Femal"]}}, "female, male; did you mean 'female'?"),
        ({"name": "q", "where": {"age": [60, 60]}}, "bin edge"),
        ({"name": "q", "where": {"sex": ["other"]}}, "'other' is not a category of 'sex'"),
        ({"name": "q", "where": {"height": [1, 2]}}, "neither a column nor a count"),
        ({"name": "q", "where": {"burden": [3, 4]}}, "largest value of the count 'burden' is 2"),
        ({"name": "q", "where": {"burden": [1.5, 2]}}, "two whole numbers"),
        ({"name": "q", "where": {}}, "maps columns"),
        ({"name": "q", "where": {"sex": "female"}}, "list of categories"),
        ({"name": "q"}, "either where, or any"),
        ({"name": "q", "where": {"sex": ["male"]}, "any": []}, "either where, or any"),
        ({"name": "q", "any": []}, "list of alternatives"),
        ({"name": "q", "where": {"sex": ["male"]}, "sql": "1=1"}, "unknown key 'sql'"),
        ({"name": "~0", "where": {"sex": ["male"]}}, "does not start with ~"),
        ({"where": {"sex": ["male"]}}, "needs a name"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(question, said):
    with pytest.raises(ProjectError, match=re.escape(said)):
        resolved(question)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        ({**COUNT, "name": "sex"}, "taken"),
        ({**COUNT, "up_to": 0}, "up_to"),
        ({**COUNT, "up_to": True}, "up_to"),
        ({**COUNT, "of": {"burden": [1, 2]}}, "neither a column nor a count"),
        ({"name": "c"}, "maps columns"),
    ],
)
def test_what_cannot_be_counted_is_refused(count, said):
    with pytest.raises(ProjectError, match=said):
        resolved(counts=(count,))


def test_a_project_keeps_both_as_they_were_written():
    plan = Plan("mst", 1.0, question_share=0.3)
    made = Project("t", SCHEMA, plan, question_list=QuestionList((ASKED,), (COUNT,)))
    again = Project.loads(made.dumps())
    assert again == made
    assert again.to_json()["questions"] == [ASKED]
    assert again.to_json()["plan"]["question_share"] == 0.3
    assert "questions" not in Project("t", SCHEMA, Plan("mst", 1.0)).to_json()
    with pytest.raises(ProjectError, match="two questions"):
        Project("t", SCHEMA, plan, question_list=QuestionList((ASKED, ASKED), (COUNT,)))
    with pytest.raises(ProjectError, match="list of objects"):
        Project.from_json({**made.to_json(), "questions": {"a": 1}})
    with pytest.raises(ProjectError, match="question_share"):
        Plan("mst", 1.0, question_share=0.95)


def test_a_changed_schema_never_gives_a_question_another_meaning():
    narrower = Schema((SCHEMA["age"], SCHEMA["sex"]))
    asked = QuestionList((ASKED, {"name": "b", "where": {"burden": [1, 2]}}), (COUNT,))
    assert asked.fitting(SCHEMA) == asked
    assert asked.fitting(narrower) == QuestionList((ASKED,))
    rebinned = Schema((Column("age", "numeric", edges=(0, 50, 100)), SCHEMA["sex"], SCHEMA["ill"]))
    assert asked.fitting(rebinned).questions == asked.questions[1:]


def test_a_csv_of_questions_reads_like_the_project_file():
    text = (
        "question,column,values,or\n"
        "older women,age,60..100,\nolder women,sex,female,\n"
        "either,ill,mild;severe,1\neither,burden,1..2,2\n\n"
    )
    assert read_questions(text, SCHEMA, [COUNT]) == [
        ASKED,
        {"name": "either", "any": [{"ill": ["mild", "severe"]}, {"burden": [1, 2]}]},
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n", "first line"),
        ("", "the file is empty"),
        ("question;column;values\nq;sex;male\n", "; between its cells; save it with commas"),
        ("question,column,values\n\n", "the file contains 0 questions"),
        (
            "question,column,values\nq,sex,female,male\n",
            "line 2 has 4 cells, but the header has 3: put ; between",
        ),
        ("question,column,values\n,sex,male\n", "line 2 names no question"),
        ('question,column,values\nq,age,"[60, 100]"\n', "'age': a range is written 60..100"),
        ("question,column,values\nq,age,60-100\n", "a range is written 60..100"),
        ("question,column,values\nq,age,old\n", "a range is written 0..100"),
        ("question,column,values\nq,burden,2\n", "'2' is not a range of 'burden': a range is written 2..2"),
        ("question,column,values\nq,age,20..1e999\n", "is not a range"),
        ("question,column,values\nq,sex,male\nq,age,20..61\n", "line 3: question 'q': the range 20 to 61"),
        ("question,column,values\nq,aeg,20..60\n", "line 2: question 'q' names 'aeg'"),
        ("question,column,values\nq,age\n", "line 2 has 2 cells"),
        ("question,column,values\nq,age,old..young\n", "line 2: 'old..young' is not a range"),
        ("question,column,values\nq,sex,male\nq,sex,female\n", "line 3: the question 'q' has two conditions"),
        ("question,column,values\nq,sex,purple\n", "'purple' is not a category"),
    ],
)
def test_a_broken_csv_names_the_line(text, said):
    with pytest.raises(ProjectError, match=re.escape(said)):
        read_questions(text, SCHEMA, [COUNT])


def test_they_read_as_half_a_sentence():
    assert in_words(ASKED) == "rows with age from 60 to 100 and sex female"
    assert in_words({"name": "x", "any": [{"ill": ["mild", "no"]}, {"sex": ["male"]}]}) == (
        "rows with ill mild or no, or with sex male"
    )
    assert in_words(COUNT) == "number of these conditions that a row meets: ill mild or severe; sex female"


def test_the_command_line_takes_a_csv_of_questions(tmp_path, capsys):
    project = Project("t", SCHEMA, Plan("mst", 1.0, question_share=0.3), question_list=QuestionList((), (COUNT,)))
    (tmp_path / "p.json").write_text(project.dumps(), "utf-8")
    (tmp_path / "q.csv").write_text("question,column,values\nolder women,age,60..100\nolder women,sex,female\n")
    given = ["plan", str(tmp_path / "p.json"), "--rows", "1000", "--questions", str(tmp_path / "q.csv")]
    assert main(given) == 0
    assert "older women (asked directly)" in capsys.readouterr().out
    (tmp_path / "q.csv").write_text("question,column,values\nolder women,age,61..100\n", "utf-8")
    assert main(given) == 2
    assert "bin edge" in capsys.readouterr().err
    assert main([*given[:-1], str(tmp_path / "none.csv")]) == 2
