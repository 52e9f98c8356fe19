"""Events like those of the case study, from a seed, for as many users as you like.

The study draws the user of each event: six of ten events go to any user, four to the lowest few. Few users drawn that way would
not be like many, so each user stands for an equal part of the study's 833,334 and gets events at that part's rate."""

import math
import random
from datetime import datetime, timedelta

FIRST = datetime(2010, 1, 1)
DAYS = 3_653  # the whole day 2020-01-01 is in it
PER_USER_AND_DAY = 60 / 365
PEAK = 0.015
STATUSES = [(0.8, "approved"), (0.9, "noFunds"), (0.975, "pending"), (1.0, "rejected")]


def rate(place):
    """How many events a user has, against the average one: `place` is from 0 to 1."""
    peak = 2 * math.exp(-((place / PEAK) ** 2) / 2) / (PEAK * math.sqrt(2 * math.pi))
    return 0.6 + 0.4 * peak


def events(users, seed):
    """In the order of time."""
    chance = random.Random(seed)
    found = []
    for user in range(users):
        each_day = rate((user + 0.5) / users) * PER_USER_AND_DAY
        time = chance.expovariate(each_day)
        while time < DAYS:
            drawn = chance.random()
            status = next(name for limit, name in STATUSES if drawn < limit)
            found.append((time, {"key": f"{user + 1:064X}", "date": FIRST + timedelta(days=int(time)), status: 1}))
            time += chance.expovariate(each_day)
    found.sort(key=lambda event: event[0])
    return [event for _, event in found]
