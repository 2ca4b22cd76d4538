class Platform:
    def is_cuda(self):
        raise NotImplementedError


current_platform = Platform()
