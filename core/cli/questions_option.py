"""``--questions FILE.csv``: questions that join those of the project file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from espalier.core.cli import project_file
from espalier.core.errors import ProjectError
from espalier.core.project.file import Project
from espalier.core.project.question_list import QuestionList, read_questions


def add_option(command: Any) -> None:
    """Declare it."""
    command.add_argument(
        "--questions",
        type=Path,
        metavar="FILE.csv",
        help="further questions, a line for each condition: question,column,values",
    )


def load(opt: argparse.Namespace) -> Project:
    """The project that was named, with the questions of ``--questions``; raises :class:`ProjectError`."""
    project = project_file.load(opt.project)
    if opt.questions is None:
        return project
    listed = project.question_list
    try:
        more = read_questions(opt.questions.read_text("utf-8-sig"), project.schema, listed.counts)
        return replace(project, question_list=QuestionList((*listed.questions, *more), listed.counts))
    except OSError as error:
        raise ProjectError(f"cannot read {opt.questions}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ProjectError(f"{opt.questions} is not UTF-8 text") from None
    except ProjectError as error:
        raise ProjectError(f"{opt.questions}: {error}", **error.data) from None
