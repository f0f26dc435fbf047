
0
in0Placeholder*
dtype0*
shape:
0
in1Placeholder*
dtype0*
shape:
0
in2Placeholder*
dtype0*
shape:

TanTanin0*
T0

AsinAsinin0*
T0

AcosAcosin0*
T0

AtanhAtanhin0*
T0

LogLogin1*
T0

SqrtSqrtin1*
T0

RsqrtRsqrtin1*
T0
&

Reciprocal
Reciprocalin1*
T0

InvInvin1*
T0

AcoshAcoshin2*
T0

out0IdentityTan*
T0

out1IdentityAsin*
T0

out2IdentityAcos*
T0
 
out3IdentityAtanh*
T0

out4IdentityLog*
T0

out5IdentitySqrt*
T0
 
out6IdentityRsqrt*
T0
%
out7Identity
Reciprocal*
T0

out8IdentityInv*
T0
 
out9IdentityAcosh*
T0"ª