-- Which tools look at which kind of source.
local kinds = {
    vault_search = "notes", vault_read = "notes",
    code_search = "code", code_read = "code", code_grep = "code",
    code_log = "history", code_blame = "history",
}

local seen, count = {}, 0
local function look(tool)
    local kind = kinds[tool]
    if kind and not seen[kind] then
        seen[kind] = true
        count += 1
    end
end

for _, call in context.history.tools do
    if call.success then look(call.name) end
end
look(context.result.tool_name)

if count < 3 then
    return false
end
return {
    {
        type = "notify_self",
        message = "Looked at notes, code and history. Put together what they say, and where they differ.",
        deliver_at = "after_tool",
    },
    { type = "set_state", key = "last_research_turn", value = context.turn.number },
}
