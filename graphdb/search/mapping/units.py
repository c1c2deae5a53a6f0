"""Units that requests name beside numbers: of lengths, of time."""

__all__ = ["DURATIONS_MS", "METERS"]

METERS = {
    "mm": 0.001, "millimeters": 0.001, "cm": 0.01, "centimeters": 0.01, "m": 1.0, "meters": 1.0,
    "km": 1000.0, "kilometers": 1000.0, "in": 0.0254, "inch": 0.0254, "ft": 0.3048, "feet": 0.3048,
    "yd": 0.9144, "yards": 0.9144, "mi": 1609.344, "miles": 1609.344,
    "nmi": 1852.0, "NM": 1852.0, "nauticalmiles": 1852.0,
}  # fmt: skip

DURATIONS_MS = {
    "nanos": 1e-6,
    "micros": 1e-3,
    "d": 86_400_000,
    "h": 3_600_000,
    "ms": 1,
    "m": 60_000,
    "s": 1000,
}
