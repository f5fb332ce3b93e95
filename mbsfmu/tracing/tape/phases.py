"""Parallel execution of calls: sections of a program, phase by phase.

In a phase, calls of one section depend on none of another section in the same phase. Calls are made in the last
possible phase, so that others do not wait; a section with less work in a phase advances other calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mbsfmu.tracing.tape.dependence import Call, Dependence

SHARED = 8000
"""Operations, some microseconds, above which a phase is shared by threads."""
_WORTH = 0.8
"""Largest sequential fraction of all operations with which sections are used."""

Group = tuple[int, int, list[int]]
"""Phase and section of calls that belong together, and their indices."""


def groups(calls: Sequence[Call], dependence: Dependence, costs: Sequence[int]) -> list[Group]:
    """Return the calls in groups, phase by phase; one group if sections would not be faster.

    Parameters
    ----------
    calls, dependence
        The calls, and which of them depend on which.
    costs
        How many operations a call takes, by kernel.
    """
    together = [(0, 0, list(range(len(calls))))]
    if not any(call.section for call in calls):  # neither a second section nor what joins some
        return together
    found = _Phases(calls, dependence, costs)
    found.level()
    return found.groups() if found.longest() < _WORTH * found.whole else together


class _Phases:
    """Assignment of calls to phases.

    Parameters
    ----------
    calls, dependence, costs
        As for `groups`.
    """

    def __init__(self, calls: Sequence[Call], dependence: Dependence, costs: Sequence[int]) -> None:
        self._calls = calls
        self._dependence = dependence
        self._costs = [costs[call.kernel] for call in calls]
        self._section = _sections(calls, dependence)
        self._phase = self._last()
        self._members: dict[int, list[int]] = {}
        for index, section in enumerate(self._section):
            self._members.setdefault(section, []).append(index)

    @property
    def whole(self) -> int:
        """Operations of all calls."""
        return sum(self._costs)

    def longest(self) -> int:
        """Return the number of sequential operations."""
        return sum(max(loads.values()) if self._shares(loads) else sum(loads.values()) for loads in self._loads())

    def groups(self) -> list[Group]:
        """Return the calls in groups."""
        found: dict[tuple[int, int], list[int]] = {}
        for index, key in enumerate(zip(self._phase, self._section, strict=True)):
            found.setdefault(key, []).append(index)
        return [(*key, found[key]) for key in sorted(found)]

    def level(self) -> None:
        """Advance calls of sections with less work."""
        loads = self._loads()
        sections = [each for each in self._members if each >= 0]
        for phase, own in enumerate(loads):
            most = max(own.values())
            if most * len(sections) < SHARED:
                continue
            for section in sections:
                for index in self._members[section] if own.get(section, 0) < most else ():
                    later, cost = self._phase[index], self._costs[index]
                    if later > phase and own.get(section, 0) + cost <= most and self._may(index, phase):
                        self._phase[index] = phase
                        loads[later][section] -= cost
                        own[section] = own.get(section, 0) + cost

    def _shares(self, loads: dict[int, int]) -> bool:
        return sum(loads.values()) >= SHARED

    def _loads(self) -> list[dict[int, int]]:
        """Return the operations of each section, phase by phase."""
        loads: list[dict[int, int]] = [{} for _ in range(1 + max(self._phase))]
        for phase, section, cost in zip(self._phase, self._section, self._costs, strict=True):
            loads[phase][section] = loads[phase].get(section, 0) + cost
        return loads

    def _hop(self, maker: int, user: int) -> int:
        """Return the least number of phases between a call and one on which it depends."""
        if self._section[maker] != self._section[user]:
            return 1
        one, other = self._calls[maker].stage, self._calls[user].stage
        return int(one is not None and other is not None and one < other)

    def _may(self, user: int, phase: int) -> bool:
        return all(self._phase[each] + self._hop(each, user) <= phase for each in self._dependence.before[user])

    def _last(self) -> list[int]:
        """Return the last possible phase of each call, with the fewest phases."""
        before, after, size = self._dependence.before, self._dependence.after, len(self._calls)
        first = [0] * size
        for index in range(size):
            first[index] = max((first[each] + self._hop(each, index) for each in before[index]), default=0)
        last = [max(first)] * size
        for index in reversed(range(size)):
            last[index] = min((last[each] - self._hop(index, each) for each in after[index]), default=last[index])
        return last


def _sections(calls: Sequence[Call], dependence: Dependence) -> list[int]:
    """Return the section of each call: by default that of the first argument from a section."""
    ends = np.cumsum([0, *(len(call.taken) for call in calls)]).tolist()
    makers = dependence.owners(np.concatenate([call.taken for call in calls])).tolist()
    found: list[int | None] = []
    for call, (begin, end) in zip(calls, pairwise(ends), strict=True):
        section = call.section
        if section is None:
            known = (found[maker] for maker in makers[begin:end] if maker >= 0)
            section = next((each for each in known if each is not None and each >= 0), None)
        found.append(section)
    for index in reversed(range(len(calls))):  # others belong to whom they are for
        if found[index] is None:
            used = (found[user] for user in dependence.after[index])
            found[index] = next((each for each in used if each is not None and each >= 0), 0)
    return [each or 0 for each in found]
