/* Takes and gives arrays and all types: ẋ = u for a vector, y = M u + c for another one; and what it takes otherwise. */
#include "unit3.h"

#define UNIT_TOKEN "{8d0b0a4e-vectors}"
#define HAS_EVENT_MODE 0

enum { TIME, FORCE, POINT, MATRIX, CONSTANT, PRODUCT };

static const Variable variables[] = {
    {FLOAT64, 0, 1, NEITHER},  {FLOAT64, 1, 3, INPUT},    {FLOAT64, 4, 3, SETTABLE}, {FLOAT64, 7, 4, SETTABLE},
    {FLOAT64, 11, 2, SETTABLE}, {FLOAT64, 13, 2, NEITHER}, {FLOAT32, 0, 1, INPUT},    {FLOAT32, 1, 1, NEITHER},
    {INT8, 0, 1, INPUT},       {INT8, 1, 1, NEITHER},     {UINT8, 0, 1, INPUT},      {UINT8, 1, 1, NEITHER},
    {INT16, 0, 1, INPUT},      {INT16, 1, 1, NEITHER},    {UINT16, 0, 1, INPUT},     {UINT16, 1, 1, NEITHER},
    {INT32, 0, 1, INPUT},      {INT32, 1, 1, NEITHER},    {UINT32, 0, 1, INPUT},     {UINT32, 1, 1, NEITHER},
    {INT64, 0, 1, INPUT},      {INT64, 1, 1, NEITHER},    {UINT64, 0, 1, INPUT},     {UINT64, 1, 1, NEITHER},
    {BOOLEAN, 0, 2, INPUT},    {BOOLEAN, 2, 2, NEITHER},  {STRING, 0, 2, INPUT},     {STRING, 2, 2, NEITHER},
    {INT64, 2, 1, INPUT},      {INT64, 3, 1, NEITHER},
};

static void start(Values *values)
{
    values->float64[7] = values->float64[10] = 1.0; /* the unit matrix */
    values->int64[2] = 1;
    snprintf(values->string[0], TEXT_LENGTH, "%s", "first");
    snprintf(values->string[1], TEXT_LENGTH, "%s", "second");
}

static void update(Values *values)
{
    double *numbers = values->float64;
    numbers[0] = values->time;
    for (int i = 0; i < 2; i++)
        numbers[13 + i] = numbers[7 + 2 * i] * numbers[1] + numbers[8 + 2 * i] * numbers[2] + numbers[11 + i];
    values->float32[1] = values->float32[0];
    values->int8[1] = values->int8[0];
    values->uint8[1] = values->uint8[0];
    values->int16[1] = values->int16[0];
    values->uint16[1] = values->uint16[0];
    values->int32[1] = values->int32[0];
    values->uint32[1] = values->uint32[0];
    values->int64[1] = values->int64[0];
    values->uint64[1] = values->uint64[0];
    values->int64[3] = values->int64[2];
    for (int i = 0; i < 2; i++) {
        values->boolean[2 + i] = values->boolean[i];
        memcpy(values->string[2 + i], values->string[i], TEXT_LENGTH);
    }
}

static Status advance(Values *values, double to, Outcome *outcome)
{
    for (int i = 0; i < 3; i++)
        values->float64[4 + i] += (to - values->time) * values->float64[1 + i];
    outcome->reached = to;
    return OK;
}

static void handle(Values *values) { (void)values; }

static double derivative(const Values *values, size_t unknown, size_t i, size_t known, size_t k)
{
    return unknown == PRODUCT && known == FORCE && k < 2 ? values->float64[7 + 2 * i + k] : 0.0;
}

#include "functions3.c"
