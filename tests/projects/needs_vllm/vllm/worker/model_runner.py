class ModelRunner:
    def __init__(self, vllm_config):
        self.config = vllm_config
