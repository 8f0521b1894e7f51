#pragma once

#include <memory>
#include <string>

#include "parsimon/loss/classification.hpp"
#include "parsimon/loss/regression.hpp"
#include "parsimon/text.hpp"

namespace parsimon {

namespace detail {

struct LossExpression {
  std::string name;
  bool has_parameter = false;
  double parameter = 0.0;
};

// name or name(number)
inline LossExpression split_loss(const std::string& text) {
  const std::size_t open = text.find('(');
  if (open == std::string::npos) return {text};
  LossExpression parsed{text.substr(0, open), true};
  if (text.back() != ')' ||
      !parse_number(text.substr(open + 1, text.size() - open - 2), parsed.parameter)) {
    throw Error("The loss \"" + text + "\" is not of the form name or name(number).");
  }
  return parsed;
}

inline LossPtr make_loss_with_parameter(const std::string& name, double parameter) {
  if (name == "squared") return std::make_shared<SquaredLoss>(parameter);
  if (name == "huber") return std::make_shared<HuberLoss>(parameter);
  if (name == "epsilon_insensitive") return std::make_shared<EpsilonInsensitiveLoss>(parameter);
  if (name == "pinball") return std::make_shared<PinballLoss>(parameter);
  return nullptr;
}

inline LossPtr make_plain_loss(const std::string& name) {
  if (name == "squared") return std::make_shared<SquaredLoss>();
  if (name == "binary_logistic") return std::make_shared<BinaryLogisticLoss>();
  if (name == "multiclass_logistic") return std::make_shared<MulticlassLogisticLoss>();
  if (name == "mirror_logistic") return std::make_shared<MirrorLogisticLoss>();
  if (name == "binary_hinge") return std::make_shared<BinaryHingeLoss>();
  if (name == "multiclass_hinge") return std::make_shared<MulticlassHingeLoss>();
  if (name == "binary_squared_hinge") return std::make_shared<BinarySquaredHingeLoss>();
  if (name == "multiclass_squared_hinge") return std::make_shared<MulticlassSquaredHingeLoss>();
  if (name == "one_vs_rest_squared_hinge") return std::make_shared<OneVsRestSquaredHingeLoss>();
  return nullptr;
}

}  // namespace detail

// The inverse of Loss::describe().
inline LossPtr parse_loss(const std::string& text) {
  const detail::LossExpression parsed = detail::split_loss(text);
  const LossPtr loss = parsed.has_parameter
                           ? detail::make_loss_with_parameter(parsed.name, parsed.parameter)
                           : detail::make_plain_loss(parsed.name);
  if (loss) return loss;
  throw Error("There is no loss \"" + text +
              "\": use squared, squared(scale), huber(threshold), epsilon_insensitive(tolerance), "
              "pinball(quantile), binary_logistic, multiclass_logistic, mirror_logistic, "
              "binary_hinge, multiclass_hinge, binary_squared_hinge, multiclass_squared_hinge or "
              "one_vs_rest_squared_hinge.");
}

}  // namespace parsimon
