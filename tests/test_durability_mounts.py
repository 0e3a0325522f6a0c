"""Network file systems and full disks: found, warned of, polled; and all the same right."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mindpulse.recorder import Recorder
from mindpulse.store.folder_run import open_folder
from mindpulse.store.mounts import MOUNT_TABLE, network_file_system
from mindpulse.watcher.waiting import Inotify, Polling, waiter_for

LOCAL = ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs", "vfat", "nfsd", "rootfs")
NETWORK = [
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs"),
    *("fhgfs", "gpfs", "fuse", "fuse.sshfs", "fuse.juicefs", "fuse.s3fs", "fuseblk", "virtiofs"),
    *("ocfs2", "gfs2", "wekafs", "orangefs", "dpc", "panfs"),
]
ODD_NAMES = ["a share", "tab\there", "back\\slash", "new\nline", "行 #1", "\udcff"]


def line(number: int, mount: str, kind: str, optional: str = "shared:1 ") -> str:
    """As the kernel writes it; 0 to 3 optional fields stand before the dash."""
    return f"{number} 1 0:{number} / {mount} rw,relatime {optional}- {kind} source rw,vers=4.2"


def table_of(folder: Path, *lines: str) -> Path:
    table = folder / "mountinfo"
    root = line(20, "/", "ext4")
    table.write_text("\n".join([root, *lines]) + "\n", errors="surrogateescape")
    return table


@pytest.mark.parametrize("kind", NETWORK)
def test_network_file_systems_are_known(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, line(30, str(tmp_path / "share"), kind))
    assert network_file_system(tmp_path / "share" / "run", table) == kind
    assert network_file_system(tmp_path / "share", table) == kind
    assert network_file_system(tmp_path, table) is None
    assert network_file_system(tmp_path / "share2", table) is None


@pytest.mark.parametrize("kind", LOCAL)
def test_local_file_systems_are_no_network(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, line(30, str(tmp_path / "disk"), kind))
    assert network_file_system(tmp_path / "disk" / "run", table) is None


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_escaped_as_the_kernel_does(tmp_path: Path, name: str) -> None:
    share = tmp_path / name
    escaped = str(share).replace("\\", "\\134")
    for character, code in ((" ", "040"), ("\t", "011"), ("\n", "012"), ("#", "043")):
        escaped = escaped.replace(character, f"\\{code}")
    table = table_of(tmp_path, line(30, escaped, "nfs4"))
    assert network_file_system(share / "run", table) == "nfs4"


def test_what_is_mounted_last_and_deepest_counts(tmp_path: Path) -> None:
    share = tmp_path / "share"
    table = table_of(
        tmp_path,
        line(30, str(share), "autofs", ""),
        line(31, str(share), "nfs4", "shared:2 master:3 propagate_from:4 "),
        line(32, str(share / "local"), "ext4"),
        line(33, str(share / "local" / "far"), "cifs"),
        "short",
        "1 2 3 4 5",
        "",
    )
    assert network_file_system(share / "run", table) == "nfs4"
    assert network_file_system(share / "local" / "run", table) is None
    assert network_file_system(share / "local" / "far", table) == "cifs"
    assert network_file_system(share, tmp_path / "no table") is None


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "share")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    table = table_of(tmp_path, line(30, str(tmp_path / "share"), "lustre"))
    assert network_file_system(tmp_path / "link" / "run", table) == "lustre"
    assert network_file_system(tmp_path / "loop", table) is None


def test_the_table_of_this_machine_is_read(tmp_path: Path) -> None:
    if not MOUNT_TABLE.exists():
        pytest.skip("there is no /proc/self/mountinfo here")
    found = network_file_system(Path("/proc"))
    assert found is None


def test_there_it_warns_polls_and_records_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_of(tmp_path, line(30, str(tmp_path / "share"), "fuse.sshfs"))
    monkeypatch.setattr(network_file_system, "__defaults__", (table,))
    stop = threading.Event()
    assert isinstance(waiter_for([tmp_path / "share"], stop), Polling)
    local = waiter_for([tmp_path], stop)
    assert isinstance(local, Inotify | Polling)
    local.close()
    recorder = Recorder(tmp_path / "share" / "run")
    recorder.add_scalars(1, {"x": 1.0})
    recorder.close()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "fuse.sshfs" in record.message
    assert "local disk" in record.message
    assert open_folder(tmp_path / "share" / "run").series("x").values.tolist() == [1.0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 512 KiB."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_disk_that_fills_up_and_is_freed_again_and_again(small_disk: Path) -> None:
    """Nothing is asked of the user: recording resumes, and tells in a note that it stood still."""
    recorder = Recorder(small_disk / "run", flush_interval=0.01)
    step = 0
    for _ in range(3):
        filler = small_disk / "filler"
        with suppress(OSError):  # as much as there is
            filler.write_bytes(bytes(1 << 20))
        errors = recorder.stats.errors
        while recorder.stats.errors == errors:
            step += 1
            recorder.add_scalars(step, {f"tag{index}": float(step) for index in range(5)})
            if step % 50 == 0:
                recorder.flush()
        filler.unlink()
        assert recorder.flush()
    recorder.close()
    assert recorder.stats.rows_lost == 0
    run = open_folder(small_disk / "run")
    for index in range(5):
        assert run.series(f"tag{index}").steps.tolist() == list(range(1, step + 1))
    assert "recorder_error" in {note.kind for note in run.notes()}
    assert all(report.valid for report in run.files())
