#!/usr/bin/env python3
# Numbers of the Pixel modules' rules (../../src/pixel.rs), reckoned from the rules as README.md beside this states them, with integers of any
# size and rational decay tables: no line of the Rust is used. `python3 vectors.py > vectors.csv` writes the same bytes each time.
import random
from decimal import Decimal, getcontext

getcontext().prec = 60
draw = random.Random(52)
Y = Decimal(1) / (Decimal(2) ** (Decimal(1) / Decimal(32)))
INVERSE = [int(Decimal(2**32 - 1) * Y**n) for n in range(32)]
MAX_SUM = 47742
LEAST_DIVIDER = MAX_SUM - 1024


def decayed(value, periods):
    """value · y^periods, in the kernel's steps: halve for each 32 periods, then one multiplication."""
    if periods > 32 * 63:
        return 0
    return ((value >> periods // 32) * INVERSE[periods % 32]) >> 32


def run(total, into, us):
    """Sum and place in the period after running for us units of 1024 ns."""
    periods, rest = divmod(us + into, 1024)
    if periods == 0:
        return total + (us << 10), rest
    whole = MAX_SUM - decayed(MAX_SUM, periods) - 1024
    added = decayed(1024 - into, periods) + whole + rest
    return decayed(total, periods) + (added << 10), rest


def after(util, us):
    """A(util, us)."""
    if us == 0:
        return util
    total, into = run(util * LEAST_DIVIDER, 0, us)
    return total // (LEAST_DIVIDER + into)


def runtime(util):
    """rt(util): periods until util is reached."""
    total, into, ms = 0, 0, 0
    while total // (LEAST_DIVIDER + into) < util:
        before = total
        total, into = run(total, into, 1024)
        if total == before:
            break
        ms += 1
    return ms


def roomy(util, capacity, room, share, tapered):
    if room == "auto":
        return after(util, share)
    if room == "tapered" and tapered:
        return util if util >= capacity else util + (capacity - util) * (share - 1024) // 1024
    if room == "none":
        return util
    return util * share // 1024


def row(*values):
    print(",".join(str(int(v)) if isinstance(v, bool) else str(v) for v in values))


def capacity():
    return draw.choice([35, 160, 182, 188, 188, 498, 725, 731, 1024, draw.randint(1, 1024)])


def a_room():
    room = draw.choice(["auto", "tapered", "constant", "none"])
    return room, draw.choice([0, 500, 4000, draw.randint(0, 60000)]) if room == "auto" else draw.randint(1024, 1280)


print("# kind, what goes in, what comes out; written by vectors.py")
for util in range(1025):
    row("runtime", util, runtime(util))
for _ in range(2000):
    util, us = draw.randint(0, 1100), draw.choice([draw.randint(0, 2000), draw.randint(0, 400000)])
    row("after", util, us, after(util, us))
for _ in range(300):
    capacities = sorted(draw.sample(range(1, 1025), draw.randint(1, 8)))
    row("nominal", *capacities, runtime(capacities[-2] + 1 if len(capacities) > 1 else capacities[0]))
for _ in range(2000):
    (room, share), cap, util, tapered = a_room(), capacity(), draw.randint(0, 1200), draw.random() < 0.8
    if room != "none":
        row("headroom", room, share, util, cap, tapered, roomy(util, cap, room, share, tapered))
for _ in range(2000):
    up, down, power = draw.choice([0, 500, 2000]) * 1000, draw.choice([0, 500, 5000, 20000]) * 1000, draw.randint(1, 4)
    now, to = draw.randint(300000, 3200000), draw.randint(300000, 3200000)
    # At the edge, where the ratio's power decides.
    edge = down * to**power // now**power
    delta = max(0, draw.choice([up, edge, draw.randint(0, 25_000_000)]) + draw.randint(-2, 2))
    limit = down * to
    for _ in range(power - 1):
        limit = limit // now * to
    held = delta < up if to > now else to < now and delta * now < limit
    row("limit", up, down, power, delta, now, to, held)
for _ in range(1500):
    woke, util, times, ran = draw.randint(0, 1024), draw.randint(0, 1024), draw.randint(0, 4), 0
    pieces, expected = [draw.randint(0, 30_000_000) for _ in range(draw.randint(1, 4))], []
    at, counted = 0, 0
    for piece in pieces:
        at += piece
        counted += piece // 1000 * times
        expected.append(after(woke, counted) if times and util >= woke else "none")
    row("ramp", woke, util, times, len(pieces), *pieces, *expected)
for _ in range(2500):
    near = draw.random() < 0.4
    last, mean = draw.randint(0, 1024), draw.randint(0, 1024)
    util = max(0, mean + draw.randint(-12, 12)) if near else draw.randint(0, 1024)
    last = max(0, util + draw.randint(-12, 12)) if draw.random() < 0.5 else last
    unchanged, auto, off, ignored = (draw.random() < p for p in (0.3, 0.5, 0.1, 0.2))
    cap, new = capacity(), (last, mean, unchanged)
    if auto and off:
        new = (0, 0, False)
    elif (auto and ignored) or (not auto and unchanged):
        pass
    elif mean < util:
        new = (util, util, True)
    elif mean - util <= 9:
        # A sample of an old value is far from any.
        if unchanged or abs(last - util) > 9:
            new = (util, mean, True)
    elif auto or util <= cap:
        new = (util, (4 * mean - (mean - util)) // 4, True)
    row("sample", last, mean, util, unchanged, cap, auto, off, ignored, *new)
for _ in range(1500):
    cap = capacity()
    left = cap - draw.choice([0, 0, draw.randint(0, cap - 1)])
    util, least, most = (draw.choice([0, 1024, cap, draw.randint(0, 1024)]) for _ in range(3))
    margin, fits = draw.randint(1024, 1600), None
    fits = util * margin <= left * 1024
    top = cap == 1024
    enough = fits or (most <= cap and not (top and most == 1024))
    wants = min(least, most)
    row("fits", util, least, most, cap, left, margin, fits, enough and not (util < wants and not top and wants > left))
for _ in range(1500):
    (room, share), cap, factor = a_room(), capacity(), draw.choice([1024, 1024, 512, 2048, draw.randint(1, 4096)])
    cfs, rt, dl, irq = (draw.choice([0, draw.randint(0, cap)]) for _ in range(4))
    promised = draw.choice([0, draw.randint(0, 1 << 20)])
    least, most = sorted([draw.choice([0, draw.randint(0, 1024)]), draw.choice([1024, draw.randint(0, 1024)])])

    def asks(frequency):
        if irq >= cap:
            return cap
        tasks = cfs + rt
        if frequency:
            tasks = min(max(roomy(tasks * factor // 1024, cap, room, share, True), least), most)
        if tasks + dl >= cap:
            return cap
        if not frequency:
            tasks += dl
        bandwidth = (promised * 1024) >> 20
        total = tasks * (cap - irq) // cap
        total += roomy(irq, cap, room, share, False) if frequency else irq
        total += roomy(bandwidth, cap, room, share, False) if frequency else 0
        return min(total, cap)

    row("asks", room, share, cap, factor, cfs, rt, dl, irq, promised, least, most, asks(True), asks(False))
for _ in range(400):
    n = draw.randint(1, 6)
    freqs = sorted(draw.sample(range(300000, 3200000), n))
    caps, powers = sorted(draw.sample(range(1, 1025), n)), sorted(draw.sample(range(1000, 5000000), n))
    costs = [p // c for p, c in zip(powers, caps)]
    waste = [i + 1 < n and costs[i] >= costs[i + 1] for i in range(n)]
    wanted = draw.randint(250000, 3300000)
    good = [i for i in range(n) if freqs[i] >= wanted and not waste[i]] or [n - 1]
    row("model", n, *freqs, *caps, *powers, wanted, *costs, freqs[good[0]])
