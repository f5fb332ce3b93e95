"""Python of docs/guides/learning.md runs as it is printed, and its search finds a policy."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from documented import ROOT

from mbsfmu.compiling.compiler import has_compiler


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_the_search_of_the_guide_improves_the_return() -> None:
    """docs/guides/learning.md: levers that stay where they are are beaten, and machines are brought to the target."""
    pytest.importorskip("gymnasium")
    page = (ROOT / "docs" / "guides" / "learning.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(code, names)  # the page is ours
    env, returns, mean = names["env"], names["returns"], names["mean"]
    assert env.action_space.shape == env.observation_space.shape == (32, 4)
    assert all(later > earlier for earlier, later in pairwise(returns[:4]))
    assert returns[-1] > 0.5 * returns[0]
    assert mean[0] < 0.0 < mean[2], "spools of positive command turn the house and stretch the stick"
    far = []
    for policy in (mean, np.zeros(4)):
        observations, _ = env.reset()
        for _ in range(20):
            away = observations - list(names["TARGET"].values())
            observations, *_ = env.step(np.clip(policy * away, -1.0, 1.0))
        far.append(np.abs(observations - list(names["TARGET"].values())).sum(axis=1))
    assert np.all(far[0] < 0.3 * far[1]), "in every machine"
    env.close()
