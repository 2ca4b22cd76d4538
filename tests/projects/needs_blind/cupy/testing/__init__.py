from cupy.testing._loops import numpy_cupy_equal
