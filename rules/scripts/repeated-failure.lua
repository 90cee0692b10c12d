-- How often has the tool that just failed done so in this query, this time included? A call that
-- somebody refused is no failure of the tool, and no reason to warn again.
if context.event.payload.ending == "denied" then
    return false
end

local tool = context.result.tool_name
local count = context.history.failures[tool] or 0
if count < 3 then
    return false
end

return {
    type = "notify_self",
    message = `{tool} has failed {count} times in this query. Do not try the same again: look at the error, change the arguments, or use another tool.`,
    category = "warning",
    priority = "high",
    deliver_at = "after_tool",
}
