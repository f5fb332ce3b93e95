/* The residual beside a solution, of formulations whose unknowns have all coordinates among them. */

#if ERROR > 0
/* The residual, for which all coordinates are among the unknowns. */
static int evaluate_near(
    Instance *instance, const int *dependent, const double *coordinates, const double *unknowns, double *residual
) {
    (void)dependent;
    (void)coordinates;
    return evaluate(instance, NULL, unknowns, residual);
}
#endif
