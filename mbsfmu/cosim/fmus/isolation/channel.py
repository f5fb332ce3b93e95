"""Messages between two processes over a socket."""

from __future__ import annotations

import pickle
import struct
from socket import socket
from typing import Any

_LENGTH = struct.Struct("=Q")
_ONCE = 1 << 16  # bytes that are asked for at once: nearly always all


class Channel:
    """One end.

    Parameters
    ----------
    connected
        A socket that is connected with the other end; both are processes of ours, which trust each other.
    """

    def __init__(self, connected: socket) -> None:
        self._socket = connected

    def wait_for(self, limit: float | None) -> None:
        """Set the time limit of waiting in s; None for no limit, the default."""
        self._socket.settimeout(limit)

    def send(self, message: Any) -> None:
        """Send a message.

        Raises
        ------
        ConnectionError
            When nobody is at the other end.
        TimeoutError
            When nobody takes it.
        """
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> Any:
        """Wait for a message and return it.

        Raises
        ------
        ConnectionError, EOFError
            When nobody is at the other end any more.
        TimeoutError
            When none comes in time.
        """
        data = self._part()
        while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            data += self._part()
        return pickle.loads(memoryview(data)[_LENGTH.size :])

    def _part(self) -> bytes:
        data = self._socket.recv(_ONCE)
        if not data:
            raise EOFError
        return data

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
