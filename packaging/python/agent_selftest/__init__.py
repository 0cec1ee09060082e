"""Grades of recorded agent sessions, for Python.

The program ``selftest`` of the same wheel does the work; this module asks it for JSON and returns
what it says, as dictionaries and lists that ``pandas.DataFrame`` takes as they are::

    from agent_selftest import SelfGrader

    grader = SelfGrader()
    grades = grader.grade_latest_sessions(10)
    scores = grader.identify_patterns(days=30)["task_types"]

Columns and their meaning: docs/recorded-sessions.md.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Union

__all__ = ["SelfGrader", "SelftestError"]

PathLike = Union[str, "os.PathLike[str]"]

# The program's exit code if there is nothing to grade or to report.
_NOTHING = 4


class SelftestError(RuntimeError):
    """The program failed; ``exit_code`` is its exit code, the message what it wrote about it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class SelfGrader:
    """Grades recorded sessions by rules and reads patterns and reports out of the grades.

    Args:
        sources: Files and folders with sessions. Without any, those of the configuration, else the
            homes of all known agents.
        database: A SQLite file or a PostgreSQL URL. Without one, ``DATABASE_URL``, else
            ``.selftest/selftest.db`` of the project.
        project: The project's folder; the current one if it is not given.
        agent: Only sessions of this agent, such as ``claude-code``.
        program: The program to run; that of this wheel if it is not given.
    """

    def __init__(
        self,
        sources: Sequence[PathLike] = (),
        database: Optional[PathLike] = None,
        project: Optional[PathLike] = None,
        agent: Optional[str] = None,
        program: Optional[PathLike] = None,
    ) -> None:
        self._program = os.fspath(program) if program is not None else _own_program()
        self._project = [] if project is None else ["--directory", os.fspath(project)]
        self._selection: List[str] = []
        for source in [sources] if isinstance(sources, (str, os.PathLike)) else sources:
            self._selection += ["--source", os.path.abspath(source)]
        if database is not None:
            self._selection += ["--db", os.fspath(database)]
        if agent is not None:
            self._selection += ["--agent", agent]

    def grade_latest_sessions(self, n: int = 10) -> List[Dict[str, Any]]:
        """Grades the newest ``n`` sessions that have no grade yet or have changed.

        Returns:
            One dictionary per session that was graded now; none if nothing is new.
        """
        scan = self._json("latest", str(n))
        return [] if scan is None else list(scan["grades"])

    def identify_patterns(self, days: int = 30) -> Dict[str, Any]:
        """Finds what the sessions of the last days have in common, after grading new ones.

        Returns:
            ``task_types`` (a list), ``tools``, ``error_classes``, ``error_causes`` and ``clusters``;
            an empty dictionary if there is no session.
        """
        summary = self._json("summary", "--days", str(days))
        return {} if summary is None else dict(summary["patterns"])

    def generate_weekly_report(self, week: Optional[str] = None) -> Optional[Dict[str, Any]]:
        """Grades new sessions and makes the report of a week, which is stored as well.

        Args:
            week: An ISO week such as ``2026-W47``; the current one if it is not given.

        Returns:
            The report; ``None`` if the week has no session.
        """
        report = self._json("weekly", *([] if week is None else ["--week", week]))
        return None if report is None else dict(report)

    def get_grades_summary(self, days: int = 7) -> str:
        """Grades new sessions and summarises the last days, as text for people."""
        return self._run("summary", "--days", str(days)).stdout

    def get_task_score(self, task_type: str, days: int = 30) -> Optional[float]:
        """Returns the score of a type of task, from 0 to 5, over the last days.

        Args:
            task_type: A type such as ``debugging``.

        Returns:
            The score; ``None`` if no session of these days has this type.
        """
        for entry in self.identify_patterns(days).get("task_types", []):
            if entry["task_type"] == task_type:
                return float(entry["score"])
        return None

    def _json(self, command: str, *arguments: str) -> Any:
        """Returns what a command prints as JSON; ``None`` if there is nothing to tell."""
        done = self._run(command, "--json", *arguments)
        return json.loads(done.stdout) if done.returncode != _NOTHING else None

    def _run(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        line = [self._program, *self._project, "grade", command, *arguments, *self._selection]
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode not in (0, _NOTHING):
            raise SelftestError(done.stderr.strip() or "selftest failed", done.returncode)
        return done


def _own_program() -> str:
    """Returns the program of this environment, else that on ``PATH``."""
    name = "selftest.exe" if os.name == "nt" else "selftest"
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.is_file() else name
