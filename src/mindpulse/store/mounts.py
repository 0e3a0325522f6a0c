"""Tells whether a folder lies on a network file system."""

from __future__ import annotations

import re
from pathlib import Path

MOUNT_TABLE = Path("/proc/mounts")
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|glusterfs|lustre|beegfs|gpfs|fuse(?:\..*)?|fuseblk"
)
_OCTAL = re.compile(r"\\([0-7]{3})")


def network_file_system(path: Path, table: Path = MOUNT_TABLE) -> str | None:
    """Type of the file system ("nfs4") if it is one of the network or of FUSE, else None."""
    try:
        lines = table.read_text(errors="replace").splitlines()
    except OSError:  # no such table on this system: nothing to warn of
        return None
    target = path.resolve()
    best, kind = -1, ""
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        mount = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), parts[1]))
        depth = len(mount.parts)
        # A later line of the same folder was mounted over the earlier one.
        if depth >= best and (target == mount or mount in target.parents):
            best, kind = depth, parts[2]
    return kind if _NETWORK.fullmatch(kind) else None
