"""What every test shares. No fixture here applies by itself: a test names what it uses."""

from hypothesis import settings

# A slow machine is no finding, and a failure prints what replays it. In CI the examples are the same each time:
# hypothesis sets that by itself.
settings.register_profile("apportion", settings(), deadline=None, print_blob=True)
settings.load_profile("apportion")
