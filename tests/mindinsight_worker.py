"""Runs in MindInsight's own environment: what its reader finds in a folder, as a line of JSON.

python tests/mindinsight_worker.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import tempfile


def main() -> None:
    """Loads the folder as the service does and prints all values by kind and tag."""
    os.environ["MINDINSIGHT_WORKSPACE"] = tempfile.mkdtemp(prefix="mindinsight-")
    from mindinsight.datavisual.data_transform.ms_data_loader import MSDataLoader

    loader = MSDataLoader(sys.argv[1])
    loader.load()
    events = loader.get_events_data()
    found = {}
    for kind in ("scalar", "histogram", "tensor", "image"):
        try:
            tags = events.list_tags_by_plugin(kind)
        except KeyError:
            tags = []
        for tag in tags:
            found[tag] = [
                [event.step, event.wall_time, value_of(kind, event.value)]
                for event in events.tensors(tag)
            ]
    print("\n" + json.dumps({"integrity": loader.is_integrity, "tags": found}))


def value_of(kind, value):
    """A value as JSON holds it."""
    if kind == "scalar":
        return value
    if kind == "histogram":
        buckets = [[b.left, b.width, b.count] for b in value.histogram._original_buckets]
        return {"buckets": buckets, "min": value.min, "max": value.max, "count": value.count}
    if kind == "tensor":
        return {"dims": list(value.dims), "values": value.tensor_value.reshape(-1).tolist()}
    return {"height": value.height, "width": value.width, "data": value.encoded_image.hex()}


if __name__ == "__main__":
    main()
