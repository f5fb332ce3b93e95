/*
 * SUNDIALS' CVODE and IDA on rates and their Jacobian, which are compiled together with this file: no call of a step
 * leaves C. IDA is given the residual dy/dt - f. SUNDIALS' own headers are not needed: its interface is declared below
 * as of version 7, with 64-bit indices.
 */
#include <stdint.h>
#include <string.h>

#include "rates.h" /* of CasADi: rates, jac_rates; SIZE, INPUTS and DEGREE come with it */

typedef void *Context, *Vector, *Matrix, *LinearSolver, *Memory;
int SUNContext_Create(int communicator, Context *);
Vector N_VNew_Serial(int64_t, Context);
double *N_VGetArrayPointer(Vector);
Matrix SUNDenseMatrix(int64_t, int64_t, Context);
double *SUNDenseMatrix_Data(Matrix);
LinearSolver SUNLinSol_Dense(Vector, Matrix, Context);

typedef int Rates(double, Vector, Vector, void *);
typedef int Jacobian(double, Vector, Vector, Matrix, void *, Vector, Vector, Vector);
Memory CVodeCreate(int method, Context);
int CVodeInit(Memory, Rates *, double, Vector);
int CVodeReInit(Memory, double, Vector);
int CVodeSStolerances(Memory, double, double);
int CVodeSetLinearSolver(Memory, LinearSolver, Matrix);
int CVodeSetJacFn(Memory, Jacobian *);
int CVodeSetMaxNumSteps(Memory, long);
int CVodeSetStopTime(Memory, double);
int CVode(Memory, double, Vector, double *, int);

typedef int Residual(double, Vector, Vector, Vector, void *);
typedef int IterationMatrix(double, double, Vector, Vector, Vector, Matrix, void *, Vector, Vector, Vector);
Memory IDACreate(Context);
int IDAInit(Memory, Residual *, double, Vector, Vector);
int IDAReInit(Memory, double, Vector, Vector);
int IDASStolerances(Memory, double, double);
int IDASetLinearSolver(Memory, LinearSolver, Matrix);
int IDASetJacFn(Memory, IterationMatrix *);
int IDASetMaxNumSteps(Memory, long);
int IDASetStopTime(Memory, double);
int IDASolve(Memory, double, double *, Vector, Vector, int);

enum { BDF = 2, NORMAL = 1, MANY = 1000000 };

static Vector y, slope;
static Memory memory;
static int implicit;
static double begin, inputs[INPUTS + 1], coefficients[INPUTS + 1][DEGREE + 1];

/* Inputs are polynomials of the time since the last event. */
static void set_inputs(double time) {
    for (int i = 0; i < INPUTS; i++) {
        double value = 0.0;
        for (int k = 0; k <= DEGREE; k++) value = value * (time - begin) + coefficients[i][k];
        inputs[i] = value;
    }
}

static void evaluate(double time, Vector at, double *rate) {
    static double numbers[rates_SZ_W + 1];
    static casadi_int integers[rates_SZ_IW + 1];
    const double *arguments[rates_SZ_ARG + 2];
    double *results[rates_SZ_RES + 1];
    set_inputs(time);
    arguments[0] = N_VGetArrayPointer(at), arguments[1] = inputs, results[0] = rate;
    rates(arguments, results, integers, numbers, 0);
}

static void differentiate(double time, Vector at, double *columns) {
    static double numbers[jac_rates_SZ_W + 1];
    static casadi_int integers[jac_rates_SZ_IW + 1];
    const double *arguments[jac_rates_SZ_ARG + 2];
    double *results[jac_rates_SZ_RES + 1];
    set_inputs(time);
    arguments[0] = N_VGetArrayPointer(at), arguments[1] = inputs, results[0] = columns;
    jac_rates(arguments, results, integers, numbers, 0);
}

static int of_rates(double time, Vector at, Vector rate, void *data) {
    (void)data;
    evaluate(time, at, N_VGetArrayPointer(rate));
    return 0;
}

static int of_jacobian(double time, Vector at, Vector rate, Matrix matrix, void *data, Vector a, Vector b, Vector c) {
    (void)rate, (void)data, (void)a, (void)b, (void)c;
    differentiate(time, at, SUNDenseMatrix_Data(matrix));
    return 0;
}

static int of_residual(double time, Vector at, Vector rate, Vector residual, void *data) {
    double *found = N_VGetArrayPointer(residual), *given = N_VGetArrayPointer(rate);
    (void)data;
    evaluate(time, at, found);
    for (int i = 0; i < SIZE; i++) found[i] = given[i] - found[i];
    return 0;
}

static int of_iteration_matrix(
    double time, double share, Vector at, Vector rate, Vector residual, Matrix matrix, void *data, Vector a, Vector b,
    Vector c
) {
    double *columns = SUNDenseMatrix_Data(matrix);
    (void)rate, (void)residual, (void)data, (void)a, (void)b, (void)c;
    differentiate(time, at, columns);
    for (int i = 0; i < SIZE * SIZE; i++) columns[i] = -columns[i];
    for (int i = 0; i < SIZE; i++) columns[i * (SIZE + 1)] += share;
    return 0;
}

/* Makes the integrator; returns whether it could. */
int make(int with_ida, double tolerance) {
    Context context;
    if (SUNContext_Create(0, &context)) return 0;
    implicit = with_ida;
    y = N_VNew_Serial(SIZE, context), slope = N_VNew_Serial(SIZE, context);
    Matrix matrix = SUNDenseMatrix(SIZE, SIZE, context);
    LinearSolver solver = SUNLinSol_Dense(y, matrix, context);
    memory = with_ida ? IDACreate(context) : CVodeCreate(BDF, context);
    if (with_ida) {
        return !IDAInit(memory, of_residual, 0.0, y, slope) && !IDASStolerances(memory, tolerance, tolerance)
            && !IDASetLinearSolver(memory, solver, matrix) && !IDASetMaxNumSteps(memory, MANY)
            && !IDASetJacFn(memory, of_iteration_matrix);
    }
    return !CVodeInit(memory, of_rates, 0.0, y) && !CVodeSStolerances(memory, tolerance, tolerance)
        && !CVodeSetLinearSolver(memory, solver, matrix) && !CVodeSetMaxNumSteps(memory, MANY)
        && !CVodeSetJacFn(memory, of_jacobian);
}

/* Integrates from an event to the next, from and to `state`; puts the states at `times` into `rows`. */
int integrate(
    double from, const double *polynomials, double *state, int count, const double *times, double *rows
) {
    double *values = N_VGetArrayPointer(y), reached;
    begin = from;
    memcpy(coefficients, polynomials, INPUTS * sizeof coefficients[0]);
    memcpy(values, state, SIZE * sizeof *state);
    if (implicit) evaluate(from, y, N_VGetArrayPointer(slope));
    if (implicit ? IDAReInit(memory, from, y, slope) : CVodeReInit(memory, from, y)) return 0;
    if (implicit ? IDASetStopTime(memory, times[count - 1]) : CVodeSetStopTime(memory, times[count - 1])) return 0;
    for (int k = 0; k < count; k++) {
        const int flag = implicit ? IDASolve(memory, times[k], &reached, y, slope, NORMAL)
                                  : CVode(memory, times[k], y, &reached, NORMAL);
        if (flag < 0) return 0;
        memcpy(rows + k * SIZE, values, SIZE * sizeof *rows);
    }
    memcpy(state, values, SIZE * sizeof *state);
    return 1;
}
