"""Tells whether a folder lies on a network file system.

There the kernel tells nobody what other machines write, sizes and bytes arrive late, and a write
may hang with the network. Cluster file systems on shared disks are of the same kind.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

MOUNT_TABLE = Path("/proc/self/mountinfo")
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|auristorfs|beegfs|ceph|coda|dpc|fhgfs|gfs2?|glusterfs|gpfs|lustre|"
    r"ncpfs|ocfs2|orangefs|panfs|pvfs2|virtiofs|vboxsf|wekafs|fuse(?:\..*)?|fuseblk"
)
# "\\040" is a space; the kernel writes tab, newline, backslash and number sign like this, too.
_OCTAL = re.compile(r"\\([0-7]{3})")
_MOUNT_POINT = 4


def network_file_system(path: Path, table: Path = MOUNT_TABLE) -> str | None:
    """Type of the file system ("nfs4") if it is one of the network or of FUSE, else None.

    Args:
        path: a folder, which need not exist yet.
        table: the mount table, in the form of /proc/self/mountinfo.
    """
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
        target = path.resolve()
    except (OSError, RuntimeError):  # no such table on this system, or a loop of links
        return None
    best, kind = -1, ""
    for mount, found in _mounts(lines):
        depth = len(mount.parts)
        # A later line of the same folder was mounted over the earlier one.
        if depth >= best and (target == mount or mount in target.parents):
            best, kind = depth, found
    return kind if _NETWORK.fullmatch(kind) else None


def _mounts(lines: list[str]) -> Iterator[tuple[Path, str]]:
    """Mount point and type of each line: `36 35 98:0 / /mnt rw shared:1 - ext4 /dev/sda rw`."""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        parts, kinds = fields.split(" "), rest.split(" ")
        if len(parts) > _MOUNT_POINT and kinds[0]:
            yield Path(_unescaped(parts[_MOUNT_POINT])), kinds[0]


def _unescaped(text: str) -> str:
    return os.fsdecode(_OCTAL.sub(lambda match: chr(int(match[1], 8)), text))
