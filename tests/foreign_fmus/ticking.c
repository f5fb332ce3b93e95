/* Has events of every sort: a triangle wave that turns where it meets ±1, and comes back from steps there; a count of
 * periods, announced by their times; a discrete input, which may be set in event mode alone. */
#include "unit3.h"

#define UNIT_TOKEN "{8d0b0a4e-ticking}"
#define HAS_EVENT_MODE 1

enum { TIME, HEIGHT, COUNT_OF_PERIODS, PERIOD, FACTOR, SCALED, EVENTS, LAST };

static const Variable variables[] = {
    {FLOAT64, 0, 1, NEITHER},        {FLOAT64, 1, 1, NEITHER}, {FLOAT64, 6, 1, NEITHER}, {FLOAT64, 2, 1, SETTABLE},
    {FLOAT64, 3, 1, DISCRETE_INPUT}, {FLOAT64, 4, 1, NEITHER}, {FLOAT64, 7, 1, NEITHER}, {FLOAT64, 5, 1, SETTABLE},
};

static void start(Values *values)
{
    values->float64[2] = 0.31;
    values->float64[3] = 1.0;
    values->float64[5] = 1e9;
    values->hidden[0] = 1.0; /* rate */
}

static void update(Values *values)
{
    values->float64[0] = values->time;
    values->float64[4] = values->float64[3] * values->float64[1];
}

static Status advance(Values *values, double to, Outcome *outcome)
{
    double rate = values->hidden[0], meets = values->time + (rate - values->float64[1]) / rate;
    if (meets <= to) {
        outcome->event = true;
        to = meets;
    }
    if (values->float64[5] <= to) {
        outcome->ends = true;
        to = values->float64[5];
    }
    values->float64[1] = outcome->event && to == meets ? rate : values->float64[1] + rate * (to - values->time);
    outcome->reached = to;
    return OK;
}

static void handle(Values *values)
{
    values->float64[7]++;
    if (values->float64[1] == values->hidden[0])
        values->hidden[0] = -values->hidden[0];
    if (values->time >= values->next_event)
        values->float64[6]++;
    values->next_event = (values->float64[6] + 1.0) * values->float64[2];
}

static double derivative(const Values *values, size_t unknown, size_t i, size_t known, size_t k)
{
    (void)values, (void)unknown, (void)i, (void)known, (void)k;
    return 0.0;
}

#include "functions3.c"
