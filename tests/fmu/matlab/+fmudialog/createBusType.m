function createBusType(block)
% Say the call, in place of Simulink.
printf('createBusType|%s\n', block);
end
