"""``--questions FILE.csv``: questions in addition to those in the project file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from espalier.core.cli import project_file
from espalier.core.errors import ProjectError
from espalier.core.limited_file import read_limited
from espalier.core.project.file import Project
from espalier.core.project.json_text import MOST_JSON
from espalier.core.project.question_list import QuestionList, read_questions


def add_option(command: Any) -> None:
    """Declare the option ``--questions``."""
    command.add_argument(
        "--questions",
        type=Path,
        metavar="FILE.csv",
        help="further questions, one line per condition: question,column,values",
    )


def _text(path: Path) -> str:
    data = read_limited(path, MOST_JSON)
    if len(data) > MOST_JSON:
        raise ProjectError(f"it is larger than {MOST_JSON >> 20} MiB")
    return data.decode("utf-8-sig")


def load(opt: argparse.Namespace) -> Project:
    """Return the named project, with the questions of ``--questions``; raises :class:`ProjectError`."""
    project = project_file.load(opt.project)
    if opt.questions is None:
        return project
    listed = project.question_list
    try:
        more = read_questions(_text(opt.questions), project.schema, listed.counts)
        return replace(project, question_list=QuestionList((*listed.questions, *more), listed.counts))
    except OSError as error:
        raise ProjectError(f"cannot read {opt.questions}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ProjectError(f"{opt.questions} is not UTF-8 text") from None
    except ProjectError as error:
        raise ProjectError(f"{opt.questions}: {error}", **error.data) from None
