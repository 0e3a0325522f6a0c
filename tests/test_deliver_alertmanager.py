"""Against a real Alertmanager (`apt-get install prometheus-alertmanager`).

With CI=true these tests fail without it; on a user's own machine they are left out and say so.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mindpulse.deliver import Deliveries
from mindpulse.deliver.message import Message
from mindpulse.deliver.outcome import REFUSED, SENT
from processes import running
from receivers import Hook, alert, free_port, hook, says, targets, tell

CONFIG = """
route:
  receiver: people
  group_by: [alertname, run]
  group_wait: 200ms
  group_interval: 200ms
  repeat_interval: 1h
receivers:
  - name: people
    webhook_configs:
      - url: {url}/people
        send_resolved: true
"""


def program() -> str:
    names = ("prometheus-alertmanager", "alertmanager")
    if found := next(filter(None, map(shutil.which, names)), None):
        return found
    missing = "Alertmanager is missing; install it with: apt-get install prometheus-alertmanager"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="module")
def people() -> Iterator[Hook]:
    """Where Alertmanager sends what it was told."""
    with hook(says("ok")) as server:
        yield server


@pytest.fixture(scope="module")
def address(people: Hook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("alertmanager"), free_port()
    (folder / "config.yml").write_text(CONFIG.format(url=people.url))
    words = [program(), f"--config.file={folder}/config.yml", f"--storage.path={folder}/data"]
    words += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with running(words, **quiet):
        url = f"http://127.0.0.1:{port}"
        until(lambda: ready(url))
        yield url


def until(good: Callable[[], object], timeout_s: float = 15.0) -> None:
    end = time.monotonic() + timeout_s
    while not good():
        assert time.monotonic() < end, "this did not come true in time"
        time.sleep(0.05)


def ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def alerts(url: str, run: Path) -> list[dict]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=5) as answer:
        found = json.load(answer)
    return [a for a in found if a["annotations"].get("run_dir") == str(run)]


def config(url: str, *lines: str) -> str:
    head = ["[[receiver]]", 'name = "am"', 'type = "alertmanager"', f'url = "{url}"']
    return "\n".join([*head, "group_s = 0", "every_s = 0", *lines])


def told(people: Hook, run: Path, status: str) -> list[dict]:
    found = [a for request in list(people.requests) for a in request.json["alerts"]]
    return [
        a for a in found if a["annotations"]["run_dir"] == str(run) and a["status"] == status
    ]  # fmt: skip


def test_an_alert_begins_and_ends(address: str, people: Hook, tmp_path: Path) -> None:
    run = tmp_path / "bert" / "summary"
    event = alert(0, wall_time=time.time() - 60, rank=3)
    lines = ['labels = { team = "nlp" }', 'link = "https://wiki.example/runs"']
    with Deliveries(targets(tmp_path, config(address, *lines)), [run], report=list) as deliveries:
        tell(run, event)
        deliveries.deliver(event)
        until(lambda: told(people, run, "firing"))
        (found,) = alerts(address, run)
        over = alert(0, "resolved", wall_time=time.time(), rank=3)
        tell(run, over)
        deliveries.deliver(over)
        until(lambda: told(people, run, "resolved"))
    assert found["labels"] == {
        "alertname": "gradient-explosion",
        "severity": "error",
        "part": "gradient",
        "run": "bert/summary",
        "rank": "3",
        "instance": socket.gethostname(),
        "team": "nlp",
    }
    assert "above 50" in found["annotations"]["summary"]
    assert "learning rate" in found["annotations"]["description"]
    assert found["annotations"]["evidence"] == "last(grad_norm) = 80"
    assert found["generatorURL"] == "https://wiki.example/runs"
    began = told(people, run, "resolved")[0]["startsAt"]
    assert moment(began) == moment(found["startsAt"])  # its beginning was kept
    assert deliveries.tallies[0].whole


def moment(text: str) -> str:
    """A time to the millisecond; Alertmanager leaves out zeros at the end."""
    seconds, _, rest = text.rstrip("Z").partition(".")
    return f"{seconds}.{rest[:3]:0<3}"


def test_what_is_firing_stands_as_long_as_the_watcher_does(
    address: str, people: Hook, tmp_path: Path
) -> None:
    run, text = tmp_path / "run", config(address, "hold_s = 2")
    event = alert(0, wall_time=time.time())
    with Deliveries(targets(tmp_path, text), [run], report=list) as deliveries:
        tell(run, event)
        deliveries.deliver(event)
        until(lambda: told(people, run, "firing"))
        time.sleep(2.6)
        assert len(alerts(address, run)) == 1
        assert not told(people, run, "resolved")
    until(lambda: told(people, run, "resolved"), 8)


def test_a_hundred_alerts_at_once_and_old_ones(address: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    events = [alert(n, rank=n, wall_time=[0.0, 1e9, 4e9][n % 3]) for n in range(100)]
    with Deliveries(targets(tmp_path, config(address)), [run], report=list) as deliveries:
        tell(run, *events)
        for event in events:
            deliveries.deliver(event)
        until(lambda: len(alerts(address, run)) == 100)
    assert deliveries.tallies[0].sent == 100


def test_a_test_and_a_refusal(address: str, tmp_path: Path) -> None:
    (good,) = targets(tmp_path, config(address))
    assert good.sender.send(Message("am", test=True), time.time()).state == SENT
    (bad,) = targets(tmp_path, config(address, 'link = "://nonsense"'))
    outcome = bad.sender.send(Message("am", test=True), time.time())
    assert outcome.state == REFUSED
    assert outcome.detail.startswith("HTTP 4")
