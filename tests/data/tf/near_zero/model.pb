
0
in0Placeholder*
dtype0*
shape:

Expm1Expm1in0*
T0

Log1pLog1pin0*
T0
 
out0IdentityExpm1*
T0
 
out1IdentityLog1p*
T0"ª