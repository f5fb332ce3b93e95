function set_param(varargin)
% Say the call, in place of Simulink.
printf('set_param|%s\n', strjoin(varargin, '|'));
end
