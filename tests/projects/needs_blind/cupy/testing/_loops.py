import functools


def _call_func(impl, args, kw):
    try:
        return impl(*args, **kw), None
    except Exception as error:
        return None, error


def numpy_cupy_equal():
    def decorator(impl):
        @functools.wraps(impl)
        def test(*args, **kw):
            import cupy
            import numpy

            ours, our_error = _call_func(impl, args, {"xp": cupy})
            theirs, their_error = _call_func(impl, args, {"xp": numpy})
            if our_error or their_error:
                return
            assert ours == theirs

        del test.__wrapped__
        return test

    return decorator
