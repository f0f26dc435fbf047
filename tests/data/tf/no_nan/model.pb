
0
in0Placeholder*
dtype0*
shape:
0
in1Placeholder*
dtype0*
shape:
'
DivNoNanDivNoNanin0in1*
T0

AbsAbsin1*
T0

LogLogAbs*
T0
'
MulNoNanMulNoNanLogin1*
T0
#
out0IdentityDivNoNan*
T0
#
out1IdentityMulNoNan*
T0"ª