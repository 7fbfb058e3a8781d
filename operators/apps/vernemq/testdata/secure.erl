Admin = fun(Command) -> vmq_server_cli:command(["vmq-admin" | Command], false) end.
Await = fun Again() ->
    case lists:keymember(vmq_server, 1, application:which_applications(infinity)) of
        true -> ok;
        false -> timer:sleep(50), Again()
    end
end.
spawn(fun() ->
    try
        Await(),
        {ok, _} = Admin(["listener", "start", "address=0.0.0.0", "port=8883", "--allowed_protocol_versions=3,4,5,131", "--ssl", "--cafile=/vignette/security/ca.crt", "--certfile=/vignette/security/tls.crt", "--keyfile=/vignette/security/tls.key"])
    catch
        _:Reason ->
            logger:error("the listener for clients did not start: ~p", [Reason]),
            init:stop(1)
    end
end).
