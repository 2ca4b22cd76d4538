"""The stand-in's processes: one after the other, in this one."""

class ProcessRaisedException(Exception):
    pass
def spawn(function, args=(), nprocs=1, join=True):
    for rank in range(nprocs):
        try:
            function(rank, *args)
        except RuntimeError as error:
            raise ProcessRaisedException(str(error)) from error
