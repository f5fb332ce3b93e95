"""A study that kills its own process."""

MORTAL = """
import os, signal, sys
import mbsfmu
from mbsfmu.base.executors import InlineExecutor

class Mortal(InlineExecutor):
    calls = 0

    def submit(self, *call):
        self.calls += 1
        if self.calls > int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().submit(*call)
"""
"""Beginning of a script: an executor that kills the process after as many tasks as the first argument says."""
