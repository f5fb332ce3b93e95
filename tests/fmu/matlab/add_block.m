function handle = add_block(varargin)
% Say the call, in place of Simulink.
handle = varargin{2};
printf('add_block|%s\n', strjoin(varargin, '|'));
end
