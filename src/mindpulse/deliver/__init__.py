"""Receivers: where the watcher's events go."""

from __future__ import annotations

from mindpulse.deliver.file import File
from mindpulse.deliver.receiver import Many, Receiver
from mindpulse.deliver.service import Deliveries
from mindpulse.deliver.settings import load_receivers
from mindpulse.deliver.terminal import Terminal

__all__ = ["Deliveries", "File", "Many", "Receiver", "Terminal", "load_receivers"]
