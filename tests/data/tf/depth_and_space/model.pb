
E
in0Placeholder*
dtype0*$
shape:ÿÿÿÿÿÿÿÿÿ
S
DepthToSpaceDepthToSpacein0*
T0*

block_size*
data_formatNHWC
\
SpaceToDepthSpaceToDepthDepthToSpace*
T0*

block_size*
data_formatNHWC
'
out0IdentityDepthToSpace*
T0
'
out1IdentitySpaceToDepth*
T0"ª