"""Receivers at work: nobody holds up anybody, nothing is lost, nothing comes twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from mindpulse.deliver import Deliveries
from mindpulse.deliver.outcome import REFUSED, RETRY, SENT, Outcome
from mindpulse.deliver.pace import Bucket, pause_s
from mindpulse.deliver.settings import Settings, Target
from mindpulse.deliver.source import DELIVERED_FILE
from mindpulse.watcher import ActionEvent
from processes import running
from receivers import alert, hangs, hook, ids, quick, resets, says, targets, tell


class Told:
    """A sender that keeps what it was given and answers what it was told to."""

    def __init__(self, *outcomes: Outcome, refresh_s: float = 0.0) -> None:
        self.outcomes = list(outcomes) or [Outcome(SENT)]
        self.messages: list = []
        self.refresh_s = refresh_s
        self.changed = threading.Condition()

    def send(self, message, now: float) -> Outcome:
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()
            return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]

    def wait(self, count: int) -> list:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.messages) >= count, 10)
        return self.messages

    def steps(self) -> list[list[int]]:
        return [[a.event.step for a in m.alerts] for m in self.messages]


def target(sender: Told, **changed: object) -> Target:
    keys: dict[str, object] = {"group_s": 0.0, "every_s": 0.0, **changed}
    return Target(Settings("ops", "webhook", **keys), sender)  # type: ignore[arg-type]


def go(run: Path, sender: Told, *events, close_s: float = 5.0, report=print, **keys: object):
    """Starts, tells these alerts, and ends in order."""
    with Deliveries([target(sender, **keys)], [run], close_s=close_s, report=report) as deliveries:
        tell(run, *events)
        for event in events:
            deliveries.deliver(event)
    return deliveries.tallies[0]


def test_a_receiver_that_hangs_or_is_dead_holds_up_nobody(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with hook(hangs) as hanging, hook(resets) as dead, hook() as alive:
        text = "".join(
            quick(name, server.url)
            for name, server in (("hangs", hanging), ("dead", dead), ("alive", alive))
        )
        begun = time.monotonic()
        with Deliveries(targets(tmp_path, text), [run], report=list, close_s=0.5) as deliveries:
            for number in range(20):
                tell(run, alert(number))
                before = time.monotonic()
                deliveries.deliver(alert(number))
                assert time.monotonic() - before < 0.25
            alive.wait(1)
            dead.wait(1)
            deadline = time.monotonic() + 5
            while len(ids(alive.requests)) < 20 and time.monotonic() < deadline:
                time.sleep(0.01)
            closing = time.monotonic()
        assert time.monotonic() - closing < 1.5
        assert time.monotonic() - begun < 6
        assert ids(alive.requests) == [f"{10 + n} firing" for n in range(20)]
    hung, died, lived = deliveries.tallies
    assert (lived.sent, lived.left, lived.whole) == (20, 0, True)
    assert (hung.sent, hung.left) == (0, 20)
    assert hung.sentence().endswith("20 wait for the next start (it has not answered yet)")
    assert (died.sent, died.left) == (0, 20)
    assert died.last_error


def test_one_that_fails_and_recovers_gets_everything(tmp_path: Path) -> None:
    said: list[str] = []
    run = tmp_path / "run"
    with hook(says("", 500), says("", 500), says("ok")) as server:
        with Deliveries(
            targets(tmp_path, quick("ops", server.url)), [run], report=said.append
        ) as deliveries:
            tell(run, alert(1))
            deliveries.deliver(alert(1))
            server.wait(1)
            tell(run, alert(2))
            deliveries.deliver(alert(2))
            server.wait(3)
        assert ids(server.requests[-1:]) == ["11 firing", "12 firing"]
        pauses = [b.at - a.at for a, b in pairwise(server.requests)]
    assert 0.5 <= pauses[0] <= 1.5
    assert 1.0 <= pauses[1] <= 2.5
    assert said == [
        "receiver 'ops': not delivered yet, is tried again: HTTP 500 Internal Server Error",
        "receiver 'ops': works again",
    ]


def test_retry_after_is_honoured(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with hook(says("", 429, Retry_After="1"), says("ok")) as server:
        text = quick("ops", server.url)
        with Deliveries(targets(tmp_path, text), [run], report=list) as deliveries:
            tell(run, alert(1))
            deliveries.deliver(alert(1))
            server.wait(2)
        assert 1.0 <= server.requests[1].at - server.requests[0].at < 3.0


def test_what_came_while_limited_goes_in_one_message(tmp_path: Path) -> None:
    run, sender = tmp_path / "run", Told()
    with Deliveries([target(sender, every_s=0.6, burst=2)], [run]) as deliveries:
        for number in range(12):
            tell(run, alert(number))
            deliveries.deliver(alert(number))
            if number < 2:
                sender.wait(number + 1)
        sender.wait(3)
        assert sender.steps() == [[10], [11], list(range(12, 22))]


def test_alerts_that_come_together_go_together(tmp_path: Path) -> None:
    run, sender = tmp_path / "run", Told()
    with Deliveries([target(sender, group_s=0.3)], [run]) as deliveries:
        for number in range(5):
            tell(run, alert(number))
            deliveries.deliver(alert(number))
            time.sleep(0.02)
        sender.wait(1)
    assert sender.steps() == [[10, 11, 12, 13, 14]]


def test_severity_ends_and_marks(tmp_path: Path) -> None:
    events = [
        alert(0, severity="info"),
        alert(1, severity="warning"),
        alert(2, severity="critical"),
        alert(2, "resolved", severity="critical"),
    ]
    sender = Told()
    assert go(tmp_path / "a", sender, *events, min_severity="error").sent == 2
    told = [a.event.state for m in sender.messages for a in m.alerts]
    assert told == ["firing", "resolved"]
    assert go(tmp_path / "b", Told(), *events, min_severity="info", resolved=False).sent == 3
    run, sender = tmp_path / "c", Told()
    tell(run, alert(0))
    with Deliveries([target(sender)], [run]) as deliveries:
        line = json.loads((run / "alerts.jsonl").read_text().splitlines()[0])
        marked = [{**line, "id": mark, mark: "other"} for mark in ("silenced", "grouped_under")]
        with (run / "alerts.jsonl").open("a") as journal:
            journal.writelines(json.dumps(fields) + "\n" for fields in marked)
        tell(run, alert(9))
        deliveries.deliver(alert(9))
    assert [a.event.step for m in sender.messages for a in m.alerts] == [10, 19]


def test_after_a_restart_nothing_comes_twice_and_nothing_is_missing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with hook() as server:
        for start in range(6):
            text = quick("ops", server.url)
            with Deliveries(targets(tmp_path, text), [run]) as deliveries:
                for number in range(3):
                    event = alert(3 * start + number)
                    tell(run, event)
                    deliveries.deliver(event)
        assert ids(server.requests) == [f"{10 + n} firing" for n in range(18)]


def test_what_could_not_be_delivered_is_delivered_by_the_next_watcher(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = go(run, Told(Outcome(RETRY, "down")), alert(1), alert(2), close_s=0.2)
    assert (first.sent, first.left) == (0, 2)
    assert first.sentence().endswith("0 messages; 2 wait for the next start (down)")
    sender = Told()
    assert go(run, sender, alert(3)).sent == 3
    assert [a.event.step for m in sender.messages for a in m.alerts] == [11, 12, 13]


def test_what_comes_during_a_delivery_is_not_lost_by_a_restart(tmp_path: Path) -> None:
    class Slow(Told):
        def send(self, message, now: float) -> Outcome:
            if not self.messages:
                tell(run, alert(2))
            return super().send(message, now)

    run = tmp_path / "run"
    assert go(run, Slow(Outcome(SENT), Outcome(RETRY, "down")), alert(1), close_s=0.2).left == 1
    sender = Told()
    go(run, sender)
    assert sender.steps() == [[12]]


def test_the_end_overlooks_nothing_that_came_just_before(tmp_path: Path) -> None:
    for number in range(100):
        sender, run = Told(), tmp_path / str(number)
        with Deliveries([target(sender)], [tmp_path / "other"]) as deliveries:
            tell(run, alert(1))
            deliveries.deliver(alert(1), run)
        assert sender.steps() == [[11]]


def test_at_the_end_one_more_attempt_does_not_wait(tmp_path: Path) -> None:
    run, sender = tmp_path / "run", Told(Outcome(RETRY, "down"), Outcome(SENT))
    with Deliveries([target(sender)], [run], report=list, close_s=0.3) as deliveries:
        tell(run, alert(1))
        deliveries.deliver(alert(1))
        sender.wait(1)
    assert deliveries.tallies[0].sent == 1


def test_the_end_does_not_wait_for_a_pause_that_was_asked_for(tmp_path: Path) -> None:
    sender, begun = Told(Outcome(RETRY, "too often", wait_s=60.0)), time.monotonic()
    assert go(tmp_path / "run", sender, alert(1), report=list).left == 1
    assert time.monotonic() - begun < 3
    assert len(sender.messages) == 1


def test_a_new_receiver_is_told_what_is_firing_and_not_the_past(tmp_path: Path) -> None:
    run, sender = tmp_path / "run", Told()
    tell(run, alert(1), alert(2), alert(1, "resolved"))
    go(run, sender, alert(2, "resolved"), alert(3))
    told = [(a.event.since_step, a.event.state) for m in sender.messages for a in m.alerts]
    assert told == [(12, "firing"), (12, "resolved"), (13, "firing")]
    again = Told()
    go(run, again)
    assert again.messages == []


def test_a_run_that_does_not_exist_yet_has_no_past(tmp_path: Path) -> None:
    run, sender = tmp_path / "later", Told()
    assert go(run, sender, alert(1), alert(1, "resolved")).sent == 2


def test_a_journal_that_was_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    run = tmp_path / "run"
    go(run, Told(), *(alert(n) for n in range(5)))
    (run / "alerts.jsonl").unlink()
    tell(run, alert(9))
    sender = Told()
    assert go(run, sender).sent == 1
    assert sender.steps() == [[19]]


def test_damaged_lines_cost_themselves(tmp_path: Path) -> None:
    run, sender = tmp_path / "run", Told()
    run.mkdir()
    with Deliveries([target(sender)], [run]) as deliveries:
        (run / "alerts.jsonl").write_bytes(b'{"id": 1}\nnot json\n\xff\xfe\n[]\n{"torn": ')
        tell(run, alert(1))  # closes the torn line
        deliveries.deliver(alert(1))
    with (run / DELIVERED_FILE).open("ab") as state:
        state.write(b'nonsense\n{"receiver": "ops", "offset": "x"}\n')
    assert sender.steps() == [[11]]
    again = Told()
    go(run, again, alert(2))
    assert again.steps() == [[12]]


def test_several_runs_in_one_process(tmp_path: Path) -> None:
    sender = Told()
    with Deliveries([target(sender, group_s=0.2)]) as deliveries:
        for name in ("a", "b"):
            deliveries.add(tmp_path / name)
            tell(tmp_path / name, alert(1))
            deliveries.deliver(alert(1))
        sender.wait(1)
    assert {a.run_dir.name for a in sender.messages[0].alerts} == {"a", "b"}
    assert "2 runs" in sender.messages[0].title()
    for name in ("a", "b"):
        assert (tmp_path / name / DELIVERED_FILE).exists()


def test_a_run_that_appears_begins_with_its_first_event(tmp_path: Path) -> None:
    run, sender = tmp_path / "later", Told()
    tell(run, alert(1), alert(1, "resolved"), alert(2))
    with Deliveries([target(sender, group_s=0.1)], [tmp_path / "other"]) as deliveries:
        tell(run, alert(3), alert(3, "resolved"))
        deliveries.deliver(alert(3), run)
        deliveries.deliver(alert(3, "resolved"), run)
        deliveries.deliver(ActionEvent("rejected", detail="bad"), run)
    told = [(a.event.since_step, a.event.state) for m in sender.messages for a in m.alerts]
    assert told == [(12, "firing"), (13, "firing"), (13, "resolved")]


def test_giving_up_is_counted_and_told(tmp_path: Path) -> None:
    run, said = tmp_path / "run", []
    sender = Told(*[Outcome(RETRY, "down")] * 2, Outcome(SENT))
    with Deliveries([target(sender, give_up_s=1.0)], [run], report=said.append) as deliveries:
        tell(run, alert(1), alert(2))
        deliveries.deliver(alert(1))
        sender.wait(2)
        time.sleep(1.2)
        tell(run, alert(3))
        deliveries.deliver(alert(3))
        sender.wait(3)
    assert deliveries.tallies[0].given_up == 2
    assert deliveries.tallies[0].sent == 1
    assert "receiver 'ops': gave up on 2 alerts after 1 s" in said
    assert sender.messages[-1].lost == 2
    assert "2 earlier messages could not be delivered" in sender.messages[-1].body()


def test_a_refusal_is_not_repeated_and_is_counted(tmp_path: Path) -> None:
    run, said = tmp_path / "run", []
    sender = Told(Outcome(REFUSED, "HTTP 200, but code 19021"), Outcome(SENT))
    tally = go(run, sender, alert(1), report=said.append)
    assert (tally.refused, tally.sent, len(sender.messages)) == (1, 0, 1)
    assert said == ["receiver 'ops': refused 1 alert: HTTP 200, but code 19021"]
    assert go(run, Told(), alert(2)).sent == 1


def test_memory_is_bounded_and_nothing_is_lost(tmp_path: Path) -> None:
    run, sender = tmp_path / "run", Told()
    tell(run)
    with Deliveries([target(sender, group_s=0.3)], [run]) as deliveries:
        tell(run, *(alert(n) for n in range(1700)))
        deliveries.deliver(alert(0))
        sender.wait(4)
    sizes = [len(m.alerts) for m in sender.messages]
    assert max(sizes) == 500
    assert [step for steps in sender.steps() for step in steps] == list(range(10, 1710))
    assert sender.messages[0].text().count("\n") < 40
    assert "and 480 more" in sender.messages[0].body()


def test_actions_are_told_if_wanted_and_lost_ones_are_counted(tmp_path: Path) -> None:
    event = ActionEvent("request", rule="big", verb="stop", seq=3, step=90)
    run, wanted, other = tmp_path / "run", Told(), Told()
    both = [target(wanted, actions=True), target(other)]
    with Deliveries(both, [run]) as deliveries:
        deliveries.deliver(event)
        wanted.wait(1)
    assert wanted.messages[0].notes == ("request 3 (big): stop the training before step 90",)
    assert "stop the training" in wanted.messages[0].body()
    assert other.messages == []
    several = Told()
    runs = [tmp_path / "a" / "summary", tmp_path / "b" / "summary"]
    with Deliveries([target(several, actions=True)], runs) as deliveries:
        deliveries.deliver(event, runs[1])
    assert several.messages[0].notes[0].startswith("b/summary: request 3")
    flood = Told(Outcome(RETRY, "down"))
    with Deliveries([target(flood, actions=True)], [run], report=list, close_s=0.1) as deliveries:
        for _ in range(150):
            deliveries.deliver(event)
    assert deliveries.tallies[0].notes_lost == 150


def test_a_defect_of_a_sender_costs_that_message_only(tmp_path: Path) -> None:
    class Broken(Told):
        def send(self, message, now: float) -> Outcome:
            outcome = super().send(message, now)
            if len(self.messages) == 1:
                raise RuntimeError("with a s3cret inside")
            return outcome

    said: list[str] = []
    sender, run = Broken(), tmp_path / "run"
    with Deliveries([target(sender)], [run], report=said.append) as deliveries:
        tell(run, alert(1))
        deliveries.deliver(alert(1))
        sender.wait(1)
        tell(run, alert(2))
        deliveries.deliver(alert(2))
        sender.wait(2)
    assert sender.steps() == [[11], [12]]
    assert len(said) == 1
    assert said[0].startswith("receiver 'ops': refused 1 alert: RuntimeError at test_deliver")
    assert "s3cret" not in said[0]


def test_a_full_disk_is_told_and_stops_nothing(tmp_path: Path) -> None:
    run, said = tmp_path / "run", []
    run.mkdir()
    (run / DELIVERED_FILE).mkdir()  # cannot be written
    assert go(run, Told(), alert(1), alert(2), report=said.append).sent == 2
    assert len(said) == 1
    assert "cannot note what was delivered" in said[0]


def test_one_that_is_told_again_and_again_hears_what_is_firing(tmp_path: Path) -> None:
    run, sender = tmp_path / "run", Told(refresh_s=0.2)
    with Deliveries([target(sender, group_s=0.1)], [run]) as deliveries:
        tell(run, alert(1), alert(2))
        deliveries.deliver(alert(1))
        sender.wait(3)
        assert [a.event.step for a in sender.messages[2].standing] == [11, 12]
        assert sender.messages[2].alerts == ()
        tell(run, alert(1, "resolved"), alert(2, "resolved"))
        deliveries.deliver(alert(1, "resolved"))
        deadline = time.monotonic() + 5
        while not any(m.status == "resolved" for m in sender.messages):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        count = len(sender.messages)
        time.sleep(0.5)
        assert len(sender.messages) == count
    tell(run, alert(3))
    again = Told(refresh_s=60.0)
    go(run, again)
    assert again.steps() == [[13]]
    later = Told(refresh_s=60.0)
    with Deliveries([target(later)], [run]):
        later.wait(1)
    assert [a.event.step for a in later.messages[0].standing] == [13]


def test_pauses_grow_to_a_minute_and_are_spread() -> None:
    pauses = [[pause_s(n, random.Random(seed)) for seed in range(50)] for n in range(1, 12)]
    for number, found in enumerate(pauses):
        longest = min(60.0, 2.0**number)
        assert longest / 2 <= min(found) < max(found) <= longest
        assert len(set(found)) == 50


@pytest.mark.parametrize(("every_s", "burst"), [(10.0, 3), (0.5, 1), (0.0, 2)])
def test_a_bucket_never_lets_more_through(every_s: float, burst: int) -> None:
    bucket, now, gone = Bucket(every_s, burst), 100.0, []
    for _ in range(40):
        now = bucket.free_at(now)
        bucket.take(now)
        gone.append(now)
    assert gone[:burst] == [100.0] * burst
    for begin in gone:
        within = sum(begin <= t < begin + 100 for t in gone)
        assert every_s == 0 or within <= burst + 100 / every_s + 1e-6


CHILD = """
import sys, time
from pathlib import Path
from mindpulse.deliver import Deliveries, load_receivers
sys.path.insert(0, sys.argv[4])
from receivers import alert, tell
run, count = Path(sys.argv[2]), int(sys.argv[3])
with Deliveries(load_receivers(sys.argv[1]), [run], report=print) as deliveries:
    print("ready", flush=True)
    for number in range(count):
        tell(run, alert(number))
        deliveries.deliver(alert(number))
        time.sleep(0.002)
    print("done", flush=True)
    sys.stdin.readline()
"""


def test_kills_lose_nothing(tmp_path: Path) -> None:
    """An alert may come twice only if the kill came between its delivery and the note of it."""
    kills, count, rng = 4, 120, random.Random(7)
    config, run = tmp_path / "receivers.toml", tmp_path / "run"
    with hook() as server:
        config.write_text(quick("ops", server.url))
        words = [sys.executable, "-c", CHILD, config, run, str(count), str(Path(__file__).parent)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        for number in range(kills + 1):
            with running([str(word) for word in words], **pipes) as process:
                assert process.stdout.readline() == "ready\n"
                if number < kills:
                    time.sleep(rng.uniform(0.02, 0.25))
                    process.kill()
                else:
                    assert process.stdout.readline() == "done\n"
                    process.communicate("\n", timeout=20)
        found = ids(server.requests)
    assert sorted(set(found)) == sorted(f"{10 + n} firing" for n in range(count))
    twice = len(found) - len(set(found))
    in_the_air = sum(sorted((len(r.json["alerts"]) for r in server.requests), reverse=True)[:kills])
    assert twice <= in_the_air
    assert twice < count / 4
