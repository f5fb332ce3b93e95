function name = getfullname(handle)
% Say the call, in place of Simulink.
name = handle;
end
