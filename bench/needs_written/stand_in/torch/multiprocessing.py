"""The stand-in's processes: forked, whatever the context, so that a worker need not be imported again."""

import multiprocessing, sys, traceback

_FORK = multiprocessing.get_context("fork")
Process, Queue, SimpleQueue, Pool = _FORK.Process, _FORK.Queue, _FORK.SimpleQueue, _FORK.Pool
Barrier, Event, Manager = _FORK.Barrier, _FORK.Event, _FORK.Manager

class ProcessRaisedException(Exception):
    pass
class ProcessExitedException(Exception):
    pass
def get_context(method=None):
    return _FORK
def set_start_method(method, force=False):
    pass
def _run(function, rank, args, told):
    try:
        function(rank, *args)
    except Exception:
        told.put(traceback.format_exc())
        sys.exit(1)
def spawn(function, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    told = _FORK.SimpleQueue()
    processes = [_FORK.Process(target=_run, args=(function, rank, args, told)) for rank in range(nprocs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if not told.empty():
        raise ProcessRaisedException(told.get())
    if any(process.exitcode for process in processes):
        raise ProcessExitedException("a process exited")
