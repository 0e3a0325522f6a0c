"""`mindpulse profile`: when a profile counts as analysed, and calls that cannot be meant."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from mindpulse.cli import main
from mindpulse.cli.profile import OUTPUT, QUIET_S, analysed


class Clock:
    """A clock that a sleep moves on; files appear at their time."""

    def __init__(self, appear: dict[float, Path]) -> None:
        self.now, self._appear = 0.0, appear

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Moves on."""
        self.now += seconds
        for moment, path in self._appear.items():
            if moment <= self.now and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")


def test_a_profile_is_there_once_its_analysis_has_fallen_silent(tmp_path: Path) -> None:
    out = tmp_path / "host_1_ascend_ms" / OUTPUT
    clock = Clock({1.0: out / "trace_view.json", 2.5: out / "kernel_details.csv"})
    assert analysed(tmp_path, 60.0, clock=clock, sleep=clock.sleep) == out.parent
    assert 2.5 + QUIET_S <= clock.now < 2.5 + QUIET_S + 1.0


def test_a_profile_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    clock = Clock({})
    assert analysed(tmp_path / "none", 5.0, clock=clock, sleep=clock.sleep) is None
    assert clock.now >= 5.0


def test_calls_that_cannot_be_meant(tmp_path: Path) -> None:
    for words, told in (
        (["--steps", "0"], "0 is not in the range"),
        (["--steps", "1001"], "1001 is not in the range"),
        (["--metrics", "tlb"], "'tlb'"),
        ([], "no training has written here"),
    ):
        result = CliRunner().invoke(main, ["profile", str(tmp_path / "run"), *words])
        assert result.exit_code == 2
        assert told in result.output
