"""A module that starts a thread when it is imported."""

import threading
import time

__all__: list[str] = []

threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
