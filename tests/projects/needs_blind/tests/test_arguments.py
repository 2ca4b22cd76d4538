import torch
from accelerate import Accelerator
from acme.offload import cpu_offload, empty


def test_device_by_another_name():
    cpu_offload(None, execution_device=torch.device("cuda" if torch.cuda.is_available() else "cpu"))


def test_device_for_the_library():
    empty(3, device="cuda")


def test_the_process_puts_a_model_on_its_device():
    Accelerator().prepare(torch.nn.Linear(2, 2))


def test_the_process_is_told_its_device():
    Accelerator()


def test_the_process_stays_on_the_host():
    Accelerator(cpu=True)
