function load_system(name)
% Say the call, in place of Simulink.
printf('load_system|%s\n', name);
end
